#!/usr/bin/env bash
# Data directories and dictionary of the Free Spoken Digit Dataset, whose files are <digit>_<speaker>_<index>.wav.
# Usage: local/fsdd/prepare.sh [options] <corpus> <data>
# By index: 0 to 4 are the test set, 5 to 7 dev, 8 and 9 heldout, the rest train. With --test-speaker, the test set is all
# of that speaker, who is in no other, and 0 to 4 of the others train too.
# e.g.: local/fsdd/prepare.sh /corpora/fsdd data
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

test_speaker=                  # one to test on, who is in no other set

parse_options "$@"
usage 2
set -- "${args[@]}"
[[ -d $1 ]] || die "no such directory $1"
corpus=$(readlink -f "$1") data=$2
[[ ! -d $corpus/recordings ]] || corpus=$corpus/recordings

names=$(find -L "$corpus" -maxdepth 1 -regex '.*/[0-9]_[^_/]+_[0-9]+\.wav' -printf '%f\n' | sort)
[[ -n $names ]] || die "$corpus has no file such as 7_jackson_32.wav, as the Free Spoken Digit Dataset has them in recordings"
if [[ -n $test_speaker ]] && ! grep -q "_${test_speaker}_" <<< "$names"; then
    die "no file of $corpus is of $test_speaker; speakers are $(cut -d_ -f2 <<< "$names" | sort -u | paste -sd' ')"
fi

words=(zero one two three four five six seven eight nine)
for x in train heldout dev test; do
    rm -rf "${data:?}/$x"
    mkdir -p "$data/$x"
done
while IFS=_ read -r digit speaker index; do
    number=${index%.wav}
    case $number in
        [0-4]) x="test" ;;
        [5-7]) x=dev ;;
        [89]) x=heldout ;;
        *) x=train ;;
    esac
    if [[ -n $test_speaker ]]; then
        [[ $x != test ]] || x=train
        [[ $speaker != "$test_speaker" ]] || x="test"
    fi
    utt=$(printf '%s-%d-%03d' "$speaker" "$digit" "$number")
    echo "$utt $corpus/${digit}_${speaker}_$index" >> "$data/$x/wav.scp"
    echo "$utt ${words[digit]}" >> "$data/$x/text"
    echo "$utt $speaker" >> "$data/$x/utt2spk"
done <<< "$names"
for x in train heldout dev test; do
    [[ -e $data/$x/wav.scp ]] || die "$corpus has no file for the $x set: indices go from 0 to 49"
    for table in wav.scp text utt2spk; do sort -o "$data/$x/$table" "$data/$x/$table"; done
    awk '{ utts[$2] = utts[$2] " " $1 } END { for (speaker in utts) print speaker utts[speaker] }' "$data/$x/utt2spk" \
        | sort > "$data/$x/spk2utt"
    echo "$0: $x: $(wc -l < "$data/$x/text") recordings of $(wc -l < "$data/$x/spk2utt") speakers" >&2
done

dict=$data/local/dict
rm -rf "$dict"
mkdir -p "$dict"
cat > "$dict/lexicon.txt" << END
<UNK> spn
eight ey t
five f ay v
four f ao r
nine n ay n
one w ah n
seven s eh v ah n
six s ih k s
three th r iy
two t uw
zero z ih r ow
END
printf 'sil\nspn\n' > "$dict/silence_phones.txt"
echo sil > "$dict/optional_silence.txt"
awk '$1 != "<UNK>" { for (i = 2; i <= NF; i++) print $i }' "$dict/lexicon.txt" | sort -u > "$dict/nonsilence_phones.txt"
