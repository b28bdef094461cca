// Configurations in the words of PyTorch, Keras and Hugging Face: each error names ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::familiar_words_test {
namespace {

using testing::HasSubstr;

constexpr const char* kFamiliar =
    "data: {type: colour_glyphs, train_size: 50, test_size: 20}\n"
    "model:\n"
    "  - {type: conv2d, name: conv1, out_channels: 4, kernel: 3, padding: 1}\n"
    "  - relu\n"
    "  - {type: dropout, p: 0.1}\n"
    "  - flatten\n"
    "  - {type: linear, name: fc1, out_features: 12}\n"
    "  - {type: linear, name: fc2, out_features: 10}\n"
    "optimizer: {type: adam, lr: 0.01}\n"
    "train: {epochs: 1, batch_size: 10, threads: 1}\n";

class FamiliarWords : public RunFixture {
 protected:
  FamiliarWords() { write_text(config(), kFamiliar); }

  void refuses(const std::vector<std::pair<std::string, std::string>>& cases) {
    for (const auto& [setting, message] : cases) {
      const Ended ended = run_lacuna({"plan", config(), "--set", setting});
      EXPECT_EQ(ended.code, 2) << setting << "\n" << ended.out;
      EXPECT_THAT(ended.err, HasSubstr(message)) << setting;
    }
  }
};

TEST_F(FamiliarWords, OfLayers) {
  refuses({{"model.1=ReLU", "unknown layer 'ReLU'; did you mean 'relu'?"},
           {"model.0.type=Conv2d", "unknown layer 'Conv2d'; did you mean 'conv2d'?"},
           {"model.4.type=Dense", "unknown layer 'Dense'; did you mean 'linear'?"},
           {"model.1=nn.BatchNorm2d", "did you mean 'batch_norm'?"},
           {"model.1=GlobalAveragePooling2D", "did you mean 'global_average_pool'?"},
           {"model.1=Softmax", "leave it out: cross_entropy applies the softmax"},
           {"model.1=Embedding", "did you mean 'token_embedding'?"},
           {"model.1=MultiheadAttention", "did you mean 'attention'?"},
           {"model.0={type: conv2d, filters: 4, kernel_size: 3}", "did you mean 'out_channels'"},
           {"model.0={type: conv2d, out_channels: 4, kernel_size: 3}", "did you mean 'kernel'"},
           {"model.0.strides=2", "unknown key 'strides'; did you mean 'stride'?"},
           {"model.0.use_bias=false", "unknown key 'use_bias'; did you mean 'bias'?"},
           {"model.0.padding=same",
            "model.0.padding: expected a number: (kernel - 1) / 2 keeps the size at stride 1, "
            "found 'same'"},
           {"model.4={type: linear, units: 12}", "did you mean 'out_features'"},
           {"model.4.activation=relu", "write the activation as a layer after this one"},
           {"model.2={type: dropout, rate: 0.1}", "unknown key 'rate'; did you mean 'p'?"}});
}

TEST_F(FamiliarWords, OfTraining) {
  refuses(
      {{"optimizer={type: adam, learning_rate: 0.1}", "did you mean 'lr'?"},
       {"optimizer={type: sgd, learning_rate: 0.1}", "did you mean 'lr', which is required"},
       {"optimizer.lr_scheduler=cosine", "did you mean 'lr'? lr takes a schedule"},
       {"optimizer.l2=0.1", "did you mean 'weight_decay'?"},
       {"optimizer.max_grad_norm=1", "did you mean 'clip_norm'?"},
       {"optimizer.beta_1=0.9", "did you mean 'betas'?"},
       {"optimizer.epochs=3", "unknown key 'epochs'; here it is 'train.epochs'"},
       {"optimizer={optim: adamw_torch}", "did you mean 'type', which is required and missing?"},
       {"optimizer.type=adamw_torch", "unknown optimizer 'adamw_torch'; did you mean 'adamw'?"},
       {"optimizer.lr={type: CosineAnnealingLR, T_max: 10}", "did you mean 'cosine'?"},
       {"optimizer.lr={type: cosine, init: 0.1, T_max: 10}", "did you mean 'half_period'"},
       {"train={num_train_epochs: 3}", "unknown key 'num_train_epochs'; did you mean 'epochs'?"},
       {"train.per_device_train_batch_size=3", "did you mean 'batch_size'?"},
       {"train.learning_rate=3", "here it is 'optimizer.lr'"},
       {"train.weight_decay=3", "here it is 'optimizer.weight_decay'"},
       {"train.patience=3", "here it is 'train.early_stopping.patience'"},
       {"train.gradient_accumulation_steps=3", "did you mean 'accumulate'?"},
       {"train.logging_steps=3", "did you mean 'log_every'?"},
       {"train.save_total_limit=3", "here it is 'train.checkpoint.keep_last'"},
       {"train.fp16=true", "leave it out: lacuna computes with 32-bit floats"},
       {"epochs=3", "unknown section 'epochs'; here it is 'train.epochs'"},
       {"lr_scheduler=cosine", "unknown section 'lr_scheduler'; here it is 'optimizer.lr'. lr "},
       {"criterion=mse", "unknown section 'criterion'; did you mean 'loss'?"},
       {"output_dir=x", "unknown section 'output_dir'; did you mean 'run_dir'?"},
       {"metrics=[accuracy]", "unknown section 'metrics'; leave it out: evaluations report"},
       {"loss=CrossEntropyLoss", "unknown loss 'CrossEntropyLoss'; did you mean 'cross_entropy'?"},
       {"loss=nn.BCEWithLogitsLoss", "did you mean 'binary_cross_entropy'?"},
       {"loss={type: cross_entropy, label_smoothing_factor: 0.1}",
        "did you mean 'label_smoothing'?"}});
}

TEST_F(FamiliarWords, OfDataAndSparsity) {
  refuses({{"data={type: mnist, root: x}", "did you mean 'dir', which is required and missing?"},
           {"data={type: CIFAR10, dir: x}", "unknown dataset 'CIFAR10'; did you mean 'cifar10'?"},
           {"data={type: ImageFolder, dir: x}", "did you mean 'image_folder'?"},
           {"data.validation_split=0.1", "did you mean 'validation'?"},
           {"data.batch_size=8", "here it is 'train.batch_size'"},
           {"data.augment={RandomCrop: 4}", "did you mean 'crop'?"},
           {"data.augment={random_horizontal_flip: true}", "did you mean 'flip'?"},
           {"data.transforms=[]", "did you mean 'augment'?"},
           {"sparsity={algorithm: static, amount: 0.5}", "did you mean 'sparsity'?"},
           {"sparsity={algorithm: l1_unstructured}", "did you mean 'magnitude'?"},
           {"sparsity={algorithm: set, sparsity: 0.5, update: {frequency: 5}}",
            "did you mean 'freq'"}});
}

TEST_F(FamiliarWords, OfPresets) {
  write_text(folder_ / "text.txt", std::string(400, 'a') + "bcdefgh");
  write_text(config(),
             "data: {type: text, path: " + (folder_ / "text.txt") +
                 ", context: 16}\n"
                 "model: {type: gpt2, n_layer: 1, n_head: 1, n_embd: 8, n_positions: 16}\n"
                 "optimizer: {type: adam}\ntrain: {steps: 2}\n");
  refuses({{"model.hidden_size=8", "has no key 'hidden_size'; did you mean 'n_embd'?"},
           {"model.num_hidden_layers=8", "did you mean 'n_layer'?"},
           {"model.num_attention_heads=8", "did you mean 'n_head'?"},
           {"model.dropout=0.1", "did you mean 'resid_pdrop'?"},
           {"model.max_position_embeddings=8", "did you mean 'n_positions'?"},
           {"model.type=GPT2LMHeadModel", "did you mean 'gpt2'?"},
           {"data.block_size=8", "did you mean 'context'?"},
           {"data.tokenizer=GPT2Tokenizer", "did you mean 'bpe'?"}});
}

}  // namespace
}  // namespace lacuna::familiar_words_test
