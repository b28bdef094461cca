#!/bin/sh
# What examples/load_table.cpp prints of new tables is what `lacuna predict` writes: names of classes, and
# numbers in the targets' own unit. usage: load_table.sh LACUNA EXAMPLE FOLDER (which is made anew)
set -eu
lacuna=$1
example=$2
folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
awk 'BEGIN {
  print "width,height,kind" > "classes.csv"
  print "width,height,area" > "numbers.csv"
  for (i = 0; i < 200; ++i) {
    width = rand(); height = rand()
    print width "," height "," (width > height ? "wide" : "tall") > "classes.csv"
    print width "," height "," 100 + 50 * width * height > "numbers.csv"
  }
}'
printf 'height,name,width\n0.9,a,0.1\n0.2,b,0.7\n' > new.csv
for table in classes numbers; do
  of_numbers=
  if [ $table = numbers ]; then of_numbers=', task: regression, normalize_targets: true'; fi
  cat > $table.yaml << END
data: {type: csv, train: $table.csv, validation: 0.2, normalize: standard$of_numbers}
model: [{type: linear, out_features: 16}, relu, {type: linear}]
optimizer: {type: adam, lr: 0.01}
train: {epochs: 20, batch_size: 16, threads: 1}
END
  "$lacuna" train $table.yaml --run-dir $table --quiet
  "$lacuna" predict $table new.csv --out $table.predicted 2> $table.warnings
  "$example" $table new.csv > $table.printed
done
tail -n +2 classes.predicted | cut -d, -f1 | diff - classes.printed
printf 'tall\nwide\n' | diff - classes.printed
# predict writes nine digits, the example six.
tail -n +2 numbers.predicted | paste -d' ' - numbers.printed |
  awk '{ if (($1 - $2) ^ 2 > 1e-4 || $1 < 90 || $1 > 160) { print "differ: " $0; exit 1 } ++lines }
       END { if (lines != 2) exit 1 }'
