// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Heads of append-only logs. Each sender of transactions owns its own names: there is no owner, no upgrade, no
/// payment, and nobody can take or fill another sender's namespace. A head's sequence has no gaps and its size
/// never shrinks, so that leaving one out or going back shows.
contract KedgeAnchor {
    struct Head {
        uint64 seq; // 1 for the first
        uint64 size; // entries of the log
        uint64 number; // of the block
        bytes32 root; // RFC 6962 root over those entries
    }

    /// heads[sender][namespace]; namespace = SHA-256 of the log's origin.
    mapping(address => mapping(bytes32 => Head)) public heads;

    event Anchored(
        address indexed who, bytes32 indexed ns, uint64 indexed seq, uint64 size, bytes32 root, bytes32 prev
    );

    function anchor(bytes32 ns, uint64 seq, uint64 size, bytes32 root) external {
        Head storage head = heads[msg.sender][ns];
        require(seq == head.seq + 1 && size >= head.size);
        bytes32 prev = head.root;
        head.seq = seq;
        head.size = size;
        head.number = uint64(block.number);
        head.root = root;
        emit Anchored(msg.sender, ns, seq, size, root, prev);
    }
}
