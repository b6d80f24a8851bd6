import { expect, test } from 'vitest'

import { readChannelSettings } from '../src/schema/channel-settings.ts'

function problemsOf(schema: unknown): readonly string[] {
  const read = readChannelSettings({ type: 'queues', match: 'jobs.*', schema }, 'api')
  return 'problems' in read
    ? read.problems.map(({ argument, given, allowed }) => `${argument}: ${given}: ${allowed}`)
    : []
}

test('settings - an entry with valid schemas is read', () => {
  expect(problemsOf({ default: 'a', versions: { a: { type: 'object' }, b: true } })).toEqual([])
})

test('settings - an entry lists all problems of all versions of its schema', () => {
  const a = { type: 'text', properties: { url: { pattern: '^https:' } } }
  const b = { $ref: 'https://example.com/schema.json' }
  expect(problemsOf({ default: 'c', versions: { a, b, '': {} } })).toEqual([
    'schema.default: "c": a name in versions: a, b, ',
    'schema.versions."a" "/type": "text": one or more of null, boolean, integer, number, string, array, object',
    'schema.versions."a" "/properties/url/pattern": "^https:": with maxLength of at most 256 next to it',
    'schema.versions."b" "/$ref": "https://example.com/schema.json": a reference to a schema in this one, such as #/$defs/x',
    'schema.versions."": "": a name of 1 to 256 characters',
  ])
})

test('settings - at most 8 versions of 32 KiB', () => {
  const versions = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`v${index}`, {}]))
  expect(problemsOf({ default: 'v0', versions })).toHaveLength(1)
  expect(problemsOf({ default: 'a', versions: { a: { description: 'x'.repeat(33_000) } } })).toEqual([
    expect.stringMatching(/^schema\.versions\."a" "": .*33018 bytes.*: at most 32768 bytes as JSON$/),
  ])
})
