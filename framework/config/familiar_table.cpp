// The table of words that mean the same: sections, keys, and names of what a key may be. A test
// compares `ours` and `key` with docs/reference/config.md.
#include "lacuna/framework/config/familiar_names.hpp"

namespace lacuna {
namespace {

using Rows = std::vector<FamiliarName>;

Rows section_names() {
  return {
      {"model", "network net architecture module layers backbone"},
      {"data",
       "dataset datasets dataloader data_loader data_module train_dataset train_data input_data"},
      {"optimizer", "optim optimiser optimizers"},
      {"loss", "criterion loss_fn loss_function loss_func objective losses"},
      {"train", "trainer training training_args training_arguments train_args fit hyperparameters"},
      {"sparsity", "pruning prune pruner compression"},
      {"run_dir",
       "output_dir out_dir save_dir log_dir logging_dir logdir default_root_dir checkpoint_dir "
       "dirpath work_dir run_name",
       "run_dir"}};
}

Rows optimizer_keys() {
  return {
      {"lr", "lr learning_rate base_lr initial_lr init_lr max_lr", "optimizer.lr"},
      {"lr",
       "lr_scheduler scheduler lr_schedule sched learning_rate_schedule learning_rate_scheduler "
       "lr_scheduler_type lr_scheduler_kwargs lr_decay",
       "optimizer.lr",
       "lr takes a schedule, as in lr: {type: cosine, init: 0.1, half_period: 1000}"},
      {"weight_decay",
       "weight_decay weight_decay_rate decay wd l2 l2_regularization kernel_regularizer "
       "regularization",
       "optimizer.weight_decay"},
      {"betas", "beta1 beta2 beta_1 beta_2 adam_beta1 adam_beta2 betas", "optimizer.betas",
       "Both go into one list, as in betas: [0.9, 0.999]"},
      {"eps", "adam_epsilon", "optimizer.eps"},
      {"momentum", "momentum", "optimizer.momentum"},
      {"dampening", "dampening", "optimizer.dampening"},
      {"nesterov", "nesterov use_nesterov", "optimizer.nesterov"},
      {"warmup",
       "warmup warmup_steps num_warmup_steps lr_warmup_steps warmup_ratio warmup_proportion "
       "warmup_epochs",
       "optimizer.warmup"},
      {"clip_norm",
       "clip_norm max_grad_norm gradient_clip_val gradient_clip gradient_clipping grad_clip "
       "grad_norm_clip clip_grad clip_grad_norm clip_gradients clipnorm global_clipnorm max_norm",
       "optimizer.clip_norm"},
      {"no_decay", "no_decay no_weight_decay exclude_from_weight_decay skip_weight_decay",
       "optimizer.no_decay"},
      {"groups", "param_groups parameter_groups", "optimizer.groups"},
      {"params", "parameters param_names"}};
}

Rows train_keys() {
  return {
      {"epochs",
       "epochs epoch num_epochs n_epochs nb_epoch nb_epochs num_train_epochs max_epochs "
       "total_epochs",
       "train.epochs"},
      {"steps",
       "steps max_steps num_steps num_train_steps num_training_steps train_steps total_steps "
       "max_iters max_iter iterations num_iterations n_iters",
       "train.steps"},
      {"batch_size",
       "batch_size batch bs train_batch_size batch_size_train per_device_train_batch_size "
       "per_gpu_train_batch_size micro_batch_size mini_batch_size minibatch_size "
       "device_train_batch_size",
       "train.batch_size"},
      {"eval_batch_size",
       "eval_batch_size val_batch_size validation_batch_size test_batch_size "
       "per_device_eval_batch_size per_gpu_eval_batch_size",
       "train.eval_batch_size"},
      {"accumulate",
       "accumulate gradient_accumulation_steps gradient_accumulation accumulate_grad_batches "
       "accumulation_steps grad_accum accum_steps",
       "train.accumulate"},
      {"eval_every",
       "eval_every eval_steps eval_strategy evaluation_strategy eval_interval eval_freq "
       "val_check_interval check_val_every_n_epoch validation_freq",
       "train.eval_every"},
      {"log_every",
       "log_every logging_steps logging_strategy log_every_n_steps log_interval log_freq "
       "logging_interval print_freq",
       "train.log_every"},
      {"every",
       "save_steps save_strategy save_freq save_every save_interval checkpoint_every "
       "checkpoint_interval every_n_epochs every_n_train_steps",
       "train.checkpoint.every"},
      {"keep_last", "keep_last save_total_limit max_to_keep save_top_k",
       "train.checkpoint.keep_last"},
      {"keep_best",
       "keep_best load_best_model_at_end save_best_only restore_best_weights save_best",
       "train.checkpoint.keep_best"},
      {"patience", "patience early_stopping_patience", "train.early_stopping.patience"},
      {"min_delta", "min_delta early_stopping_threshold", "train.early_stopping.min_delta"},
      {"early_stopping", "early_stopping early_stop", "train.early_stopping"},
      {"checkpoint", "checkpoint checkpointing model_checkpoint checkpoints", "train.checkpoint"},
      {"ema", "ema use_ema ema_decay ema_momentum model_ema swa", "train.ema"},
      {"drop_last", "drop_last dataloader_drop_last drop_remainder", "train.drop_last"},
      {"prefetch",
       "prefetch num_workers dataloader_num_workers n_workers workers prefetch_factor "
       "dataloader_prefetch_factor",
       "train.prefetch", "One background thread prepares this number of batches ahead"},
      {"threads", "threads num_threads n_threads nthreads cpu_threads", "train.threads"},
      {"seed",
       "seed random_seed manual_seed random_state global_seed data_seed rng_seed seed_everything",
       "train.seed"},
      {"tensorboard", "tensorboard report_to logger loggers use_tensorboard", "train.tensorboard"},
      {"shards", "shards", "train.shards"},
      {"", "steps_per_epoch", "", "leave it out: it follows from the data and train.batch_size"},
      {"", "resume resume_from_checkpoint ckpt_path auto_resume", "",
       "continue a run with `lacuna train --resume --run-dir RUN`"},
      {"", "device devices accelerator gpus num_gpus n_gpu cuda no_cuda use_cuda use_cpu", "",
       "leave it out: lacuna trains on CPUs, with train.threads threads"},
      {"",
       "fp16 bf16 amp use_amp mixed_precision dtype torch_dtype "
       "fp16_opt_level half_precision",
       "", "leave it out: lacuna computes with 32-bit floats"},
      {"",
       "shuffle pin_memory dataloader_pin_memory persistent_workers compile torch_compile "
       "jit_compile inplace deterministic benchmark overwrite_output_dir "
       "remove_unused_columns",
       "", "leave it out: lacuna has no such option"},
      {"", "metrics compute_metrics metric_for_best_model monitor", "",
       "leave it out: evaluations report the metrics of the task, such as accuracy or perplexity"},
      {"", "callbacks", "",
       "use train.early_stopping, train.checkpoint and train.tensorboard instead"},
      {"", "do_train do_eval do_predict", "",
       "leave it out: `lacuna train`, `lacuna eval` and `lacuna predict` are commands"}};
}

Rows data_keys() {
  return {
      {"dir path", "root root_dir data_dir data_root dataset_dir directory", "data.dir"},
      {"dir path", "folder data_path dataset_path dir path filename file"},
      {"train", "train_file train_path train_data train_csv training_file data_files",
       "data.train"},
      {"validation",
       "validation val valid dev val_split validation_split validation_split_percentage "
       "val_size validation_size val_fraction validation_fraction val_file "
       "validation_file dev_file val_path val_data validation_data",
       "data.validation"},
      {"test", "test_file test_path test_data test_split test_csv", "data.test"},
      {"limit train_size",
       "limit max_train_samples max_samples num_samples n_samples train_samples "
       "limit_train_batches",
       "data.limit"},
      {"size image_size", "image_size img_size input_size target_size resize resolution",
       "data.size"},
      {"channels num_channels", "color_mode n_channels in_chans num_channels image_mode"},
      {"normalize",
       "normalize normalization normalise standardize rescale do_normalize image_mean image_std",
       "data.normalize"},
      {"augment",
       "augment augmentation augmentations data_augmentation transform transforms "
       "train_transform",
       "data.augment"},
      {"crop", "random_crop RandomCrop", "data.augment.crop"},
      {"flip",
       "random_flip horizontal_flip random_horizontal_flip RandomHorizontalFlip hflip RandomFlip",
       "data.augment.flip"},
      {"cutout", "random_erasing RandomErasing erasing cutout", "data.augment.cutout"},
      {"rand_augment", "RandAugment rand_aug", "data.augment.rand_augment"},
      {"operations", "num_ops n_ops"},
      {"mixup", "mixup mixup_alpha mix_up", "data.augment.mixup"},
      {"context",
       "context block_size seq_len seq_length sequence_length context_length context_size "
       "context_window n_ctx bptt max_seq_len max_seq_length max_length maxlen",
       "data.context"},
      {"max_length", "max_len maxlen max_seq_len max_seq_length seq_len block_size context"},
      {"tokenizer", "tokenizer tokenizer_name tokenizer_type tokenizer_class", "data.tokenizer"},
      {"vocab", "vocab_file vocabulary vocab_path", "data.vocab"},
      {"merges", "merges_file", "data.merges"},
      {"vocab_size max_size",
       "num_embeddings n_vocab vocabulary_size ntoken max_tokens vocab_size"},
      {"lower_case", "do_lower_case lowercase uncased lower", "data.lower_case"},
      {"min_count", "min_freq min_frequency", "data.min_count"},
      {"mask_fraction", "mlm_probability mask_prob mask_probability masking_ratio mask_ratio",
       "data.mask_fraction"},
      {"label_column", "label target target_column label_col target_col label_key labels",
       "data.label_column"},
      {"text_column", "text text_key text_col sentence_column sentence text_field",
       "data.text_column"},
      {"delimiter", "sep separator delim", "data.delimiter"},
      {"task", "problem_type", "data.task"},
      {"num_classes num_labels classes", "num_labels n_classes nb_classes num_class n_labels",
       "data.num_classes"}};
}

Rows layer_keys() {
  return {
      {"out_features",
       "units out_dim output_dim output_size out_size hidden_size hidden_dim hidden_units hidden "
       "num_outputs n_out width size features"},
      {"out_channels", "filters num_filters n_filters out_planes planes channels_out"},
      {"in_features", "in_dim input_dim input_size in_size n_in num_inputs"},
      {"in_channels", "in_planes inplanes in_chans channels_in"},
      {"kernel", "kernel_size pool_size filter_size window_size"},
      {"stride", "strides"},
      {"dilation", "dilation_rate"},
      {"padding", "pad padding_size"},
      {"bias qkv_bias attention_bias", "use_bias add_bias qkv_bias attention_bias"},
      {"init", "kernel_initializer initializer weight_init weight_initializer"},
      {"p", "rate dropout_rate drop_rate drop_prob dropout_prob prob"},
      {"heads num_attention_heads n_head n_heads", "num_heads n_heads n_head nhead"},
      {"kv_heads num_key_value_heads", "num_kv_heads n_kv_heads num_key_value_heads"},
      {"causal", "is_causal use_causal_mask"},
      {"channels features", "num_features normalized_shape num_channels"},
      {"features hidden_size n_embd dim",
       "d_model embed_dim embedding_dim embedding_size emb_dim model_dim hidden_dim output_dim "
       "units width"},
      {"num_hidden_layers n_layer n_layers depth", "num_layers n_blocks num_blocks"},
      {"intermediate_size n_inner hidden_dim",
       "dim_feedforward ffn_dim mlp_dim ffn_hidden_size feedforward_dim d_ff"},
      {"hidden_act activation_function activation", "act_fn hidden_activation nonlinearity"},
      {"hidden_dropout_prob resid_pdrop dropout",
       "residual_dropout resid_dropout hidden_dropout dropout_rate dropout_prob"},
      {"attention_probs_dropout_prob attn_pdrop attention_dropout",
       "attn_dropout attention_dropout_prob attn_drop"},
      {"embd_pdrop hidden_dropout_prob", "embed_dropout embedding_dropout"},
      {"eps layer_norm_eps layer_norm_epsilon rms_norm_eps", "epsilon norm_eps variance_epsilon"},
      {"patch patch_size", "patch_dim"},
      {"positions max_position_embeddings n_positions",
       "max_len max_seq_len max_seq_length context_length sequence_length block_size n_ctx"},
      {"padding_id pad_token_id", "padding_idx pad_id"},
      {"sparse_gradient", "sparse sparse_grad"},
      {"negative_slope", "alpha slope leaky_slope"},
      {"base rope_theta", "theta rope_base"},
      {"types type_vocab_size", "num_types n_types"},
      {"groups", "num_groups n_groups cardinality"},
      {"initializer_range", "init_std initializer_std"},
      {"tie_word_embeddings tied_to", "tie_weights tied weight_tying share_embeddings"},
      {"trainable frozen", "requires_grad freeze frozen", "model.frozen"},
      {"init_from", "pretrained pretrained_weights weights load_from", "model.init_from"},
      {"from_hf", "from_pretrained model_name_or_path pretrained_model_name_or_path",
       "model.from_hf"},
      {"repeat", "num_repeats repeats times"},
      {"", "activation", "", "write the activation as a layer after this one, as in - relu",
       "out_features out_channels"},
      {"", "input_shape batch_input_shape", "",
       "leave it out: sizes of inputs are inferred from the data", "out_features out_channels"}};
}

Rows layer_names() {
  return {
      {"linear", "Dense fc fully_connected LazyLinear"},
      {"conv2d", "conv Convolution2D DepthwiseConv2D SeparableConv2D LazyConv2d"},
      {"conv1d", "Convolution1D DepthwiseConv1D SeparableConv1D LazyConv1d"},
      {"batch_norm",
       "BatchNorm1d BatchNorm2d BatchNormalization SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d "
       "bn"},
      {"layer_norm", "LayerNormalization ln"},
      {"group_norm", "GroupNormalization"},
      {"rms_norm", "RMSNormalization LlamaRMSNorm"},
      {"max_pool", "MaxPool1d MaxPool2d MaxPooling1D MaxPooling2D"},
      {"avg_pool", "AvgPool1d AvgPool2d AveragePooling1D AveragePooling2D average_pool"},
      {"global_average_pool",
       "AdaptiveAvgPool1d AdaptiveAvgPool2d GlobalAveragePooling1D GlobalAveragePooling2D "
       "global_avg_pool"},
      {"dropout", "Dropout1d Dropout2d SpatialDropout1D SpatialDropout2D"},
      {"silu", "swish"},
      {"token_embedding", "Embedding wte word_embedding"},
      {"embedding_bag", "EmbeddingBag sparse_linear"},
      {"position_embedding", "positional_embedding positional_encoding wpe"},
      {"token_type_embedding", "segment_embedding"},
      {"attention",
       "MultiheadAttention multi_head_attention self_attention mha "
       "scaled_dot_product_attention"},
      {"class_token", "cls_token"},
      {"patch_embedding", "patch_embed PatchEmbed ViTPatchEmbeddings"},
      {"rotary", "rope RotaryEmbedding rotary_position_embedding"},
      {"residual", "Add skip_connection residual_block shortcut"},
      {"parallel", "Concatenate concat"},
      {"sequential", "ModuleList"},
      {"gpt2", "GPT GPT2Model GPT2LMHeadModel nanogpt"},
      {"bert", "BertModel BertForSequenceClassification BertForMaskedLM bert_base_uncased"},
      {"distilbert",
       "DistilBertModel DistilBertForSequenceClassification DistilBertForMaskedLM "
       "distilbert_base_uncased"},
      {"vit", "ViTModel ViTForImageClassification vision_transformer"},
      {"llama", "LlamaModel LlamaForCausalLM"},
      {"cifar_resnet", "ResNet resnet20 resnet32 resnet44 resnet56 resnet110"},
      {"", "Softmax LogSoftmax", "", "leave it out: cross_entropy applies the softmax", "linear"},
      {"", "Identity Input InputLayer", "", "leave it out: it computes nothing", "linear"}};
}

Rows other_names() {
  return {
      {"adamw", "adamw_torch adamw_torch_fused adamw_hf AdamWeightDecay"},
      {"cross_entropy",
       "CrossEntropyLoss CategoricalCrossentropy SparseCategoricalCrossentropy NLLLoss nll "
       "softmax_cross_entropy"},
      {"binary_cross_entropy", "BCELoss BCEWithLogitsLoss BinaryCrossentropy bce"},
      {"mse", "MSELoss MeanSquaredError l2_loss"},
      {"distillation", "KLDivLoss KLDivergence kl_divergence knowledge_distillation"},
      {"label_smoothing", "label_smoothing label_smoothing_factor smoothing",
       "loss.label_smoothing"},
      {"class_weights", "class_weight class_weights weight weights", "loss.class_weights"},
      {"ignore_index", "ignore_index", "loss.ignore_index"},
      {"teacher", "teacher teacher_model teacher_path", "loss.teacher"},
      {"temperature", "temperature T", "loss.temperature"},
      {"sparsity", "amount target_sparsity final_sparsity pruning_ratio prune_ratio sparsity_level",
       "sparsity.sparsity"},
      {"algorithm type", "method pruning_method sparsity_type", "sparsity.algorithm"},
      {"freq", "frequency update_frequency update_freq update_every delta_t",
       "sparsity.update.freq"},
      {"start", "begin_step start_step t_start"},
      {"stop end", "end_step stop_step t_end"},
      {"drop_fraction", "prune_rate death_rate zeta drop_rate", "sparsity.drop_fraction"},
      {"param_filter", "target_layers target_modules modules_to_prune module_names",
       "sparsity.param_filter"},
      {"magnitude", "l1_unstructured L1Unstructured global_unstructured magnitude_pruning"},
      {"gmp", "prune_low_magnitude gradual_magnitude_pruning"},
      {"static", "random_unstructured RandomUnstructured"},
      {"cosine", "CosineAnnealingLR CosineAnnealing CosineAnnealingWarmRestarts"},
      {"cosine_once", "CosineDecay cosine_decay"},
      {"multi_step", "MultiStepLR StepLR step PiecewiseConstantDecay"},
      {"power", "ExponentialLR ExponentialDecay"},
      {"polynomial", "PolynomialLR PolynomialDecay polynomial_decay"},
      {"linear", "LinearLR linear_decay"},
      {"constant", "ConstantLR constant_with_warmup"},
      {"half_period", "T_max decay_steps T_0 total_iters period"},
      {"minimum final", "eta_min min_lr lr_min end_learning_rate lr_end final_lr end_value"},
      {"init", "initial_learning_rate base_lr initial_value initial_lr initial_sparsity lr"},
      {"milestones", "boundaries step_size"},
      {"gamma beta", "decay_rate decay_factor factor gamma"},
      {"kaiming_normal", "he_normal"},
      {"kaiming_uniform", "he_uniform"},
      {"xavier_normal", "glorot_normal"},
      {"xavier_uniform", "glorot_uniform"},
      {"truncated_normal", "trunc_normal"},
      {"wordpiece", "BertTokenizer BertTokenizerFast"},
      {"bpe", "GPT2Tokenizer GPT2TokenizerFast byte_level_bpe ByteLevelBPETokenizer"},
      {"characters", "char chars character char_level"},
      {"words", "word whitespace word_level"},
      {"bytes", "byte byte_level"},
      {"mnist", "fashion_mnist FashionMNIST"},
      {"image_folder", "ImageFolder image_dataset_from_directory"},
      {"labelled_text", "text_classification glue sst2 imdb ag_news"},
      {"labelled_sparse", "extreme_classification xmc libsvm svmlight"},
      {"csv", "tabular table dataframe"},
      {"hdf5", "h5 h5py hdf"},
      {"tokens", "bin memmap"},
      {"synthetic", "make_classification fake_data FakeData random"},
      {"type",
       "optim optimizer optimizer_type optimizer_name class_name _target_ kind "
       "dataset dataset_name"}};
}

}  // namespace

const std::vector<FamiliarName>& familiar_names() {
  static const Rows table = [] {
    Rows all;
    for (const Rows& rows : {section_names(), optimizer_keys(), train_keys(), data_keys(),
                             layer_keys(), layer_names(), other_names()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return table;
}

}  // namespace lacuna
