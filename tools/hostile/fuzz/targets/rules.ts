import {
  Authorization,
  channelNameProblem,
  MAX_CHANNEL_BYTES,
  parsePolicy,
  parseRoutingTable,
  PolicyError,
  RoutingTableError,
  subscriptionPatternProblem,
} from '@signalbox/broker-core'
import { CesqlParseError, channelListMatcher, channelMatcher, compileCesql } from '@signalbox/broker-core/internal'
import * as fc from 'fast-check'

import { policyParser } from '../../../../apps/server/src/security/policy-file.ts'
import { POLICY_ACTIONS, RESOURCE_TYPES } from '../../../../packages/broker-core/src/authorization/policy.ts'
import {
  coversGlob,
  globsOverlap,
  matchesGlob,
  parseGlob,
  patternGlob,
} from '../../../../packages/broker-core/src/glob.ts'
import { compileLike } from '../../../../packages/broker-core/src/routing/cesql/like.ts'
import { JSON_UNITS, jsonText, listText, objectText, oneOfTexts, quoted } from '../grammar/json.ts'
import { channelName } from '../grammar/messages.ts'
import { almost, phrase, textOf, word } from '../grammar/pieces.ts'
import { assertHolds, assertSame, parserTarget, resultOf } from '../target.ts'

const globText = fc.oneof(
  fc.constantFrom('*', 'fuzz.*', '*.a', '**', '?', 'a?c', 'orders.eu', '_AGENTS_.*'),
  fc.array(fc.constantFrom('a', 'b', '*', '?', '.', '😀'), { maxLength: 12 }).map((parts) => parts.join('')),
  phrase,
)
const name = fc.oneof(
  fc.array(fc.constantFrom('a', 'b', '.', '😀'), { maxLength: 16 }).map((parts) => parts.join('')),
  channelName,
)

/** Matches by definition: slow, and plainly correct. */
function matchesSlowly(glob: readonly string[], text: readonly string[]): boolean {
  let row = Array.from({ length: text.length + 1 }, (_, i) => i === 0)
  for (const symbol of glob) {
    const next: boolean[] = []
    for (let i = 0; i <= text.length; i++) {
      if (symbol === '**') next.push(row[i] === true || next[i - 1] === true)
      else next.push(i > 0 && row[i - 1] === true && (symbol === '??' || symbol === text[i - 1]))
    }
    row = next
  }
  return row.at(-1) === true
}

const rule = objectText({
  clients: fc.oneof(quoted(globText), listText(quoted(globText))),
  actions: fc.oneof(
    quoted(fc.constantFrom('*', ...POLICY_ACTIONS)),
    listText(quoted(fc.constantFrom('s*', ...POLICY_ACTIONS))),
  ),
  patterns: fc.oneof(
    quoted(fc.constantFrom('*', ...RESOURCE_TYPES)),
    listText(quoted(fc.constantFrom(...RESOURCE_TYPES))),
  ),
  channels: fc.oneof(quoted(globText), listText(quoted(globText))),
  effect: oneOfTexts('"allow"', '"deny"'),
})
const policyText = objectText({ rules: listText(rule, 6) })

const yaml = fc.oneof(
  policyText,
  fc.constantFrom(
    'rules: [&a {clients: *a}]',
    'rules: &a\n  - *a\n',
    'a: &x [1]\nb: [*x, *x]',
    '? [a]\n: b',
    '!!binary x',
    '<<: {a: 1}',
    '- - - -',
    '%YAML 1.1\n---\nrules: []',
    'rules:\n  - clients: a\n    actions: send\n    patterns: queues\n    channels: x\n    effect: allow\n',
  ),
)

/** The longest file, in UTF-16 units. */
const MAX_FILE = 8_192

const policyOf = await policyParser()

function checkPolicy(text: string, client: string, channel: string): void {
  const policy = resultOf(() => policyOf(text), PolicyError)
  if (policy === undefined) return
  const authorization = new Authorization(policy)
  const caller = { clientId: client }
  for (const pattern of RESOURCE_TYPES) {
    for (const action of POLICY_ACTIONS) {
      const permitted = authorization.permits(caller, action, pattern, channel)
      assertSame('explain and permits', authorization.explain(caller, action, pattern, channel).allowed, permitted)
      assertHolds(
        'mayPermit denies a call that permits allows',
        !permitted || authorization.mayPermit(caller, action, pattern),
      )
    }
    if (
      subscriptionPatternProblem(channel) === undefined &&
      authorization.permitsAll(caller, 'subscribe', pattern, `${channel}.*`)
    ) {
      assertHolds(
        'permitsAll allows a call that permits denies',
        authorization.permits(caller, 'subscribe', pattern, `${channel}.x`),
      )
    }
  }
}

const target = fc
  .tuple(
    fc.constantFrom('queues', 'events', 'events_store', 'commands', ''),
    fc.oneof(channelName, fc.constantFrom('{ce_type}', 'a.{ce_x}', '{x}', '{ce_type', 'a{ce_a}{ce_b}')),
  )
  .map(([type, channel]) => `${type}:${channel}`)

const cesql = fc.letrec<{ expression: string; value: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    tie('value'),
    fc
      .tuple(
        tie('expression'),
        fc.constantFrom('AND', 'OR', 'XOR', '=', '!=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '%'),
        tie('expression'),
      )
      .map((parts) => parts.join(' ')),
    tie('expression').map((inner) => `(${inner})`),
    fc.tuple(fc.constantFrom('NOT ', '-', '+'), tie('expression')).map((parts) => parts.join('')),
    fc
      .tuple(
        tie('expression'),
        fc.constantFrom('LIKE', 'NOT LIKE'),
        fc.array(fc.constantFrom('%', '_', 'a', 'b', '\\%', '\\', 'é'), { maxLength: 8 }),
      )
      .map(([left, like, pattern]) => `${left} ${like} '${pattern.join('')}'`),
    fc
      .tuple(tie('expression'), fc.array(tie('expression'), { minLength: 1, maxLength: 3 }))
      .map(([left, set]) => `${left} IN (${set.join(', ')})`),
    fc
      .tuple(
        fc.constantFrom(
          'LENGTH',
          'CONCAT',
          'CONCAT_WS',
          'LOWER',
          'UPPER',
          'TRIM',
          'LEFT',
          'RIGHT',
          'SUBSTRING',
          'ABS',
          'INT',
          'BOOL',
          'STRING',
          'IS_INT',
          'IS_BOOL',
          'NONE',
        ),
        fc.array(tie('expression'), { maxLength: 3 }),
      )
      .map(([call, args]) => `${call}(${args.join(', ')})`),
  ),
  value: fc.oneof(
    fc.constantFrom(
      'a',
      'b',
      'subject',
      'EXISTS a',
      'TRUE',
      'false',
      "'text'",
      '"te\\"xt"',
      '0',
      '1',
      '-1',
      '2147483647',
      '-2147483648',
      '2147483648',
      "''",
    ),
    word,
  ),
})).expression

const attributes = fc.dictionary(
  fc.constantFrom('a', 'b', 'subject', 'type'),
  fc.oneof(word, fc.integer(), fc.boolean()),
)

export const ruleTargets = [
  parserTarget({
    name: 'glob',
    about: 'globs, against matching by definition',
    input: fc.record({ glob: almost(globText, '*', 'a*', '?', '*?'), text: almost(name, 'a', 'ab', '.') }),
    check({ glob, text }) {
      const [pattern, subject] = [textOf(glob), textOf(text, MAX_CHANNEL_BYTES)]
      channelListMatcher(pattern)(subject)
      if (pattern.length > 300 || subject.length > 300) return
      const symbols = parseGlob(pattern)
      assertSame('matchesGlob', matchesGlob(symbols, subject), matchesSlowly(symbols, Array.from(subject)))
    },
  }),
  parserTarget({
    name: 'glob-relations',
    about: 'which globs cover and overlap others',
    input: fc.record({ a: globText, b: globText, text: name }),
    check({ a, b, text }) {
      const [x, y] = [parseGlob(a), parseGlob(b)]
      const [inX, inY] = [matchesGlob(x, text), matchesGlob(y, text)]
      assertHolds('a glob covers another and not its text', !coversGlob(x, y) || !inY || inX)
      assertHolds('globs do not overlap and match one text', !(inX && inY) || globsOverlap(x, y))
      assertSame('globsOverlap the other way round', globsOverlap(y, x), globsOverlap(x, y))
    },
  }),
  parserTarget({
    name: 'channel-name',
    about: 'names of channels and patterns of subscriptions',
    input: fc.record({ pattern: almost(channelName, '.', 'a.', '*.', '>'), text: almost(channelName, '.', 'a.') }),
    check({ pattern, text }) {
      const [wanted, subject] = [textOf(pattern), textOf(text)]
      const problem = channelNameProblem(subject)
      if (subscriptionPatternProblem(wanted) !== undefined) return
      const matches = channelMatcher(wanted)(subject)
      if (matches && problem === undefined)
        assertHolds('the glob of a pattern misses a channel', matchesGlob(patternGlob(wanted), subject))
    },
  }),
  parserTarget({
    name: 'policy',
    about: 'policies in JSON and YAML: refused with reasons, or consistent answers',
    // YAML is slow to parse, and only operators write policies.
    maxMs: 1_000,
    input: fc.record({ pieces: almost(yaml, ...JSON_UNITS, '- ', '  ', '*a, ', '&a '), client: name, channel: name }),
    check: ({ pieces, client, channel }) => checkPolicy(textOf(pieces, MAX_FILE), client, channel),
  }),
  parserTarget({
    name: 'policy-value',
    about: 'policies as values',
    input: almost(policyText, ...JSON_UNITS),
    check(pieces) {
      const text = textOf(pieces)
      resultOf(() => parsePolicy(JSON.parse(text)), PolicyError, SyntaxError)
    },
  }),
  parserTarget({
    name: 'routing-table',
    about: 'routing tables',
    input: almost(
      listText(
        objectText({
          key: quoted(fc.oneof(cesql, fc.constantFrom('orders\\..*', '(a+)b', '[', 'a)|(b', '(?<n>a)\\k<n>'), phrase)),
          keyType: oneOfTexts('"regex"', '"cesql"', '"cesql"'),
          routes: quoted(fc.array(target, { maxLength: 4 }).map((targets) => targets.join(';'))),
        }),
      ),
      ...JSON_UNITS,
    ),
    check(pieces) {
      const text = textOf(pieces)
      const table = resultOf(() => parseRoutingTable(JSON.parse(text)), RoutingTableError, SyntaxError)
      const message = {
        id: '1',
        clientId: 'c',
        body: new Uint8Array(0),
        metadata: '',
        tags: { ce_type: 't', ce_x: '_AGENTS_.x' },
      }
      for (const { matches, targets, keyType } of table?.rules ?? []) {
        // Regular expressions come from the operator, and may be slow.
        if (keyType === 'cesql') matches('queues', 'orders.eu', message)
        for (const { channel } of targets) {
          const resolved = channel.resolve(message.tags)
          if ('channel' in resolved)
            assertHolds(
              'a route leads to an invalid channel',
              channelNameProblem(resolved.channel) === undefined && !resolved.channel.startsWith('_AGENTS_.'),
            )
        }
      }
    },
  }),
  parserTarget({
    name: 'cesql',
    about: 'CESQL: evaluation never throws, and returns a value of its type',
    input: fc.record({
      pieces: almost(cesql, '(', 'NOT ', ' AND a', "'", 'a + ', 'LOWER(', '-', '%', "a LIKE '%"),
      attributes,
      long: almost(word, 'ab', 'a', '%'),
    }),
    check({ pieces, attributes, long }) {
      const expression = resultOf(() => compileCesql(textOf(pieces)), CesqlParseError)
      if (expression === undefined) return
      const values = new Map<string, string | number | boolean>(Object.entries(attributes))
      values.set('b', textOf(long))
      const { value } = expression.evaluate((attribute) => values.get(attribute))
      const type = typeof value === 'number' ? 'integer' : typeof value
      if (expression.type !== 'any') assertSame('type of the result', type, expression.type)
      if (typeof value === 'number')
        assertHolds(`${value} is not a 32-bit integer`, (value | 0) === value && !Object.is(value, -0))
    },
  }),
  parserTarget({
    name: 'cesql-like',
    about: 'LIKE patterns, against matching by definition',
    input: fc.record({
      pattern: fc
        .array(fc.constantFrom('%', '_', 'a', 'b', '\\%', '\\_', '\\', '😀'), { maxLength: 12 })
        .map((parts) => parts.join('')),
      text: fc.array(fc.constantFrom('a', 'b', '%', '_', '\\', '😀'), { maxLength: 16 }).map((parts) => parts.join('')),
      times: fc.constantFrom(1, 1, 1, 2_000),
    }),
    check({ pattern, text, times }) {
      const matches = compileLike(pattern).matches(text.repeat(times))
      if (times > 1) return
      const symbols = Array.from(pattern.matchAll(/\\[%_]|[^]/gu), ([part]) =>
        part === '%' ? '**' : part === '_' ? '??' : part.length > 1 && part.startsWith('\\') ? part.slice(1) : part,
      )
      assertSame('LIKE', matches, matchesSlowly(symbols, Array.from(text)))
    },
  }),
  parserTarget({
    name: 'policy-json',
    about: 'any JSON as a policy and as a routing table',
    input: jsonText.map((text) => [text]),
    check: (pieces) =>
      void [
        resultOf(() => parsePolicy(JSON.parse(textOf(pieces))), PolicyError, SyntaxError),
        resultOf(() => parseRoutingTable(JSON.parse(textOf(pieces))), RoutingTableError, SyntaxError),
      ],
  }),
]
