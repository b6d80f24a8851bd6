import { expect, test } from 'vitest'

import { checkProse } from '../prose/check.ts'

function rulesOf(path: string, source: string): string[] {
  return checkProse(path, source).map(({ rule }) => rule)
}

test.each([
  ['told', 'The caller is told of the error.'],
  ['none-of-it', 'The node has none of it.'],
  ['beside', 'A port beside the engine.'],
  ['by-itself', 'The lease ends by itself.'],
  ['is-had', 'Keys that can be had over HTTPS.'],
  ['stands', 'The limit stands in the settings.'],
  ['whoever', 'Goes to whoever waits.'],
  ['what-clause', 'What is settled leaves the queue.'],
  ['what-clause', 'The sum of what the nodes hold.'],
  ['that-which', 'It keeps that which is leased.'],
  ['who-clause', 'It goes to who asked first.'],
  ['somebody', 'Until somebody subscribes.'],
  ['house', 'Every room has a port.'],
  ['give-back', 'The message is given back.'],
  ['take-message', 'The worker takes a message.'],
  ['let-go', 'It lets the connection go.'],
  ['ground', 'A ground for each caller.'],
  ['roster', 'The roster of agents.'],
  ['books', 'It keeps books on sends.'],
  ['of-its-own', 'The writer has a thread of its own.'],
  ['of-ours', 'It imports nothing of ours.'],
  ['for-good', 'The message is gone for good.'],
  ['figures', 'The figures of a run.'],
  ['pulse', 'At the next pulse.'],
  ['turn', 'Once in a turn.'],
  ['on-lease', 'The message is on lease.'],
  ['handed', 'The handler is handed the event.'],
  ['group-member', 'Each group member gets a part.'],
])('prose - %s is found in "%s"', (rule, text) => {
  expect(rulesOf('docs/page.md', `${text}\n`)).toEqual([rule])
  expect(rulesOf('packages/registry/src/a.ts', `// ${text}\n`)).toEqual([rule])
  expect(rulesOf('packages/registry/src/a.ts', `throw new Error('${text}')\n`)).toEqual([rule])
})

test('prose - plain sentences pass', () => {
  const text = [
    '# Durable messages',
    'A send is acknowledged after its data is synced to disk. TTL stands for time to live.',
    'What happens when a node dies? The understanding, the background and the headroom stay.',
  ].join('\n\n')
  expect(rulesOf('docs/page.md', text)).toEqual([])
})

test('prose - a problem has the place of its first character, across line breaks', () => {
  expect(checkProse('docs/page.md', '# Page\n\n- The caller is\n  told.\n')).toMatchObject([{ line: 4, column: 3 }])
  const comment = 'const a = 1\n\n/**\n * Returns the lease\n * of\n * itself.\n */\nconst b = "//"\n'
  expect(checkProse('tools/a.ts', comment)).toMatchObject([
    { path: 'tools/a.ts', line: 5, column: 4, rule: 'by-itself' },
  ])
  expect(checkProse('tools/a.ts', 'a(1) // is\n// told\n')).toMatchObject([{ line: 2, column: 4 }])
})

test('prose - code is not prose', () => {
  const page = '```\nis told\n```\n\nThe `is told` and [a page](by itself.md).\n\n<!-- is told -->\n\n    is told\n'
  expect(rulesOf('docs/page.md', page.replace('by itself', 'by-itself'))).toEqual([])
  const code = [
    "import told from './is told.ts'",
    'const pattern = /is told/',
    "const url = 'https://told.example/' + 'is told'",
    '// The `is told` phrase',
    'const text = `${told} and ${`it stands`} more`',
  ].join('\n')
  expect(rulesOf('tools/a.ts', code)).toEqual([])
})

test('prose - literals of templates are read around their expressions', () => {
  expect(checkProse('tools/a.ts', 'const a = `${b} is told ${c}`\n')).toMatchObject([
    { rule: 'told', line: 1, column: 20 },
  ])
})

test('prose - a doc comment starts with a verb or a noun phrase', () => {
  expect(rulesOf('tools/a.ts', '/** How many leases there are. */\nconst a = 1\n')).toEqual(['doc-start'])
  expect(rulesOf('tools/a.ts', '/**\n * Whether it is open.\n */\nconst a = 1\n')).toEqual(['doc-start'])
  expect(rulesOf('tools/a.ts', '/** Returns how many leases there are. */\nconst a = 1\n')).toEqual([])
  expect(rulesOf('tools/a.ts', '// How it works\nconst a = 1\n')).toEqual([])
})

test('prose - doc comments of exports and user pages cite no decision ids', () => {
  const path = 'packages/registry/src/a.ts'
  expect(rulesOf(path, '/** Holds leases (M7). */\nexport const a = 1\n')).toEqual(['decision-id'])
  expect(rulesOf(path, '/** Holds leases (CL-18). */\nconst a = 1\nexport { a as b }\n')).toEqual(['decision-id'])
  expect(rulesOf(path, 'export interface A {\n  /** In ms (A3). */\n  b: number\n}\n')).toEqual(['decision-id'])
  expect(rulesOf(path, 'export class A {\n  /** In ms (A3). */\n  #b = 1\n}\n')).toEqual([])
  expect(rulesOf(path, '/** Holds leases (M7). */\nconst a = 1\n')).toEqual([])
  expect(rulesOf(path, 'export function a() {\n  /** Holds leases (M7). */\n  const b = 1\n}\n')).toEqual([])
  expect(rulesOf('tools/a.ts', '/** Holds leases (M7). */\nexport const a = 1\n')).toEqual([])
  expect(rulesOf('docs/mcp.md', 'Leases end (M7).\n')).toEqual(['decision-id'])
  expect(rulesOf('docs/decisions/0002-mcp.md', 'Leases end (M7).\n')).toEqual([])
})

test('prose - pages have narrow lines and short paragraphs', () => {
  expect(rulesOf('docs/page.md', `${'word '.repeat(23)}\n`)).toEqual(['line-width'])
  expect(rulesOf('docs/page.md', `${'word '.repeat(19)}[word](a-very-long-link-target.md)\n`)).toEqual([])
  expect(rulesOf('docs/page.md', `| ${'word '.repeat(40)} |\n`)).toEqual([])
  expect(rulesOf('docs/page.md', 'word\n'.repeat(6))).toEqual(['paragraph-length'])
  expect(rulesOf('docs/page.md', '- word\n'.repeat(6))).toEqual([])
})

test('prose - prose-ignore exempts a line', () => {
  expect(rulesOf('tools/a.ts', "// prose-ignore: fixed text\nconst a = 'It is told twice'\n")).toEqual([])
  expect(rulesOf('docs/page.md', '<!-- prose-ignore -->\nIt is told twice.\n\nIt is told.\n')).toEqual(['told'])
})
