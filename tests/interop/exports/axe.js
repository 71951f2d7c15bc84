// Pages through axe-core in jsdom: every rule but those that need a layout. Contrast of colours is computed from the
// style sheet by tests/unit/export/test_page.c.
//   node axe.js PAGE…       with axe-core and jsdom in NODE_PATH
// Exit codes: 0 nothing found, 1 something is.
'use strict';
const fs = require('fs');
const { JSDOM } = require('jsdom');

const source = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

async function look(file) {
  const dom = new JSDOM(fs.readFileSync(file, 'utf8'), { runScripts: 'outside-only', pretendToBeVisual: true });
  dom.window.eval(source);
  const result = await dom.window.axe.run(dom.window.document, { rules: { 'color-contrast': { enabled: false } } });
  if (result.passes.length < 10) {
    throw new Error(`${file}: only ${result.passes.length} rules apply`);
  }
  for (const v of result.violations) {
    console.log(`${file}: ${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}`);
  }
  for (const v of result.incomplete) {
    console.log(`${file}: to be looked at: ${v.id}: ${v.nodes.length} places`);
  }
  return result.violations.length;
}

(async () => {
  let found = 0;
  for (const file of process.argv.slice(2)) {
    found += await look(file);
  }
  process.exit(found ? 1 : 0);
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
