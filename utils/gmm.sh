# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034  # args, root, dir, data, lang are those of the step
# What the steps that train GMMs in context share: options, sourced above parse_options, and rounds of training.

. "$root/utils/em.sh"

nj=4                                  # jobs
cmd=run_local.sh                      # where they run
num_iters=35                          # steps of EM
max_iter_inc=25                       # the last of them that adds Gaussians
realign_iters="10 20 30"              # those that begin with a new alignment
boost_silence=1.0                     # factor on the likelihoods of optional silence when aligning
context_opts=                         # e.g. "--context-width=5 --central-position=2" for quinphones
cluster_thresh=-1                     # no effect: leaves are joined that lose less than the last question gained
beam=10                               # no effect: alignment is exact
retry_beam=40                         # no effect
seed=1                                # of the directions in which Gaussians are split

begin_gmm() {  # begin_gmm: <num-leaves> <tot-gauss> <data> <lang> <ali> <exp> are what they should be
    : "$cluster_thresh" "$beam" "$retry_beam"
    leaves=${args[0]} totgauss=${args[1]} data=${args[2]} lang=${args[3]} ali=${args[4]} dir=${args[5]}
    [[ $leaves =~ ^[1-9][0-9]*$ && $totgauss =~ ^[1-9][0-9]*$ ]] \
        || die "<num-leaves> and <tot-gauss> are whole numbers, not $leaves and $totgauss"
    ((totgauss >= leaves)) || die "$totgauss Gaussians are fewer than $leaves leaves: give a larger <tot-gauss>"
    need "$data/feats.scp" "$data/text" "$lang/L.fst" "$lang/topo" "$ali/final.mdl" "$ali/num_jobs"
    [[ ! $dir -ef $ali ]] || die "$dir is the alignment directory; train into another one"
    no_model_in "$dir" model.safetensors
    mkdir -p "$dir/log"
    alone_in "$dir"
    rm -rf "$dir"/{final.mdl,final.alimdl,final.mat,model.json,num_jobs} "$dir"/{ali,trans}.* "$dir"/split* "$dir"/*.mdl
    kernelam data split --per-utt --dest "$dir" "$data" "$nj"
    echo "$nj" > "$dir/num_jobs"
    cp "$lang/phones.txt" "$dir"
    keep_feature_opts "$data" "$dir"
    if [[ -e $ali/cmvn_opts ]]; then cp "$ali/cmvn_opts" "$dir"; else echo > "$dir/cmvn_opts"; fi
}

grow_tree() {
    # shellcheck disable=SC2086  # several words
    $cmd "$dir/log/tree.log" kernelam gmm grow --num-leaves "$leaves" --seed "$seed" ${context_opts//=/ } "$lang" "$ali" "$dir"
    warnings "$dir/log/tree.log"
}

em() {  # em FIRST LAST: these steps of EM, from $dir/FIRST.mdl to $dir/LAST+1.mdl
    local x inc totals=
    inc=$(((totgauss - leaves) / max_iter_inc))
    for ((x = $1; x <= $2; x++)); do totals+=" $((leaves + inc * (x - 1 < max_iter_inc ? x - 1 : max_iter_inc)))"; done
    update_model "$1" $(($2 + 1)) "$totals"
}

among() { [[ " $2 " == *" $1 "* ]]; }  # among X "LIST"

train_rounds() {  # train_rounds ITERS FUNCTION: all steps of EM; FUNCTION X is called before those that are in ITERS
    local x first=1
    mv "$dir/0.mdl" "$dir/1.mdl"
    for ((x = 1; x < num_iters; x++)); do
        if among "$x" "$realign_iters" || among "$x" "$1"; then
            ((x == first)) || em "$first" $((x - 1))
            first=$x
        fi
        ! among "$x" "$realign_iters" || realign "$x"
        ! among "$x" "$1" || "$2" "$x"
    done
    em "$first" $((num_iters - 1))
}
