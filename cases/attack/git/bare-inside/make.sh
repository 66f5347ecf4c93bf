# A repository within the tree, as ordinary files: git in its folders obeys its settings.
entry 100644 inner/HEAD 'ref: refs/heads/main\n'
entry 100644 inner/config '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = work\n\tfsmonitor = "touch RAN-inner; false"\n'
entry 100644 inner/objects/keep ''
entry 100644 inner/refs/keep ''
entry 100644 inner/work/keep ''
