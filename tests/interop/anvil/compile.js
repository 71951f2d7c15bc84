// Compiles KedgeAnchor.sol as chain/anchor/evm_contract.h says and prints the bytes.  compile.js SOURCE
'use strict'
const fs = require('fs')
const solc = require('solc')

const input = {
  language: 'Solidity',
  sources: { 'KedgeAnchor.sol': { content: fs.readFileSync(process.argv[2], 'utf8') } },
  settings: {
    optimizer: { enabled: true, runs: 200 },
    evmVersion: 'paris',
    metadata: { bytecodeHash: 'none', appendCBOR: false },
    outputSelection: { '*': { '*': ['evm.bytecode.object'] } },
  },
}
const output = JSON.parse(solc.compile(JSON.stringify(input)))
if (output.errors) {
  console.error(output.errors.map((e) => e.formattedMessage).join('\n'))
  process.exit(1)
}
console.log(output.contracts['KedgeAnchor.sol'].KedgeAnchor.evm.bytecode.object)
