import { globSync, readFileSync } from 'node:fs'

import { AgentCardSchema } from '@signalbox/registry'
import type { Report } from 'scslre'
import { analyse } from 'scslre'
import ts from 'typescript'
import { expect, test } from 'vitest'

import { CONFIG_SCHEMA } from '../../apps/server/src/config/schema.ts'

const ROOT = `${import.meta.dirname}/../..`

/** Regular expressions that are made while the server runs, and why that does no harm. */
const MADE_AT_RUN_TIME: Readonly<Record<string, number>> = {
  // The pattern of agents' ids, which is one of the schema's, checked below.
  'packages/registry/src/card/agent-card.ts': 1,
  'packages/registry/src/http/agent-list.ts': 1,
  // An operator's own key in the routing table, over channel names of at most 255 bytes.
  'packages/broker-core/src/routing/rule.ts': 2,
  // Only checks the syntax of a pattern, and compares single characters with a part of it.
  'packages/broker-core/src/settings/schema/linear-pattern.ts': 2,
  // Some constant texts without repetition, one of which is to be found.
  'packages/connector-a2a/src/subscriber/json-bodies.ts': 1,
}

interface Literal {
  readonly at: string
  readonly source: string
  readonly flags: string
}

const literals: Literal[] = []
const made: Record<string, number> = {}

for (const file of globSync('{packages,apps}/*/src/**/*.ts', { cwd: ROOT })) {
  const text = readFileSync(`${ROOT}/${file}`, 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/')
      const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1
      literals.push({ at: `${file}:${line}`, source: node.text.slice(1, end), flags: node.text.slice(end + 1) })
    } else if ((ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === 'RegExp') {
      made[file] = (made[file] ?? 0) + 1
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
}

/** The patterns of a JSON Schema. */
function patternsIn(schema: unknown, at: string): readonly Literal[] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([key, value]: [string, unknown]) =>
    key === 'pattern' && typeof value === 'string'
      ? [{ at, source: value, flags: 'u' }]
      : patternsIn(value, `${at}.${key}`),
  )
}

/** Where a text can make matching take more than linear time. */
function slowParts({ at, source, flags }: Literal): readonly string[] {
  return analyse({ source, flags }).reports.map((report: Report) => {
    const how = report.exponential ? 'exponential' : 'polynomial'
    return `${at}: /${source}/${flags} is ${how} (${report.type})`
  })
}

test('regular expressions - no text makes one of the product take more than linear time', () => {
  expect(literals.length).toBeGreaterThan(50)
  const patterns = [...patternsIn(CONFIG_SCHEMA, 'config'), ...patternsIn(AgentCardSchema, 'card')]
  expect(patterns.length).toBeGreaterThan(5)
  expect([...literals, ...patterns].flatMap(slowParts)).toEqual([])
})

test('regular expressions - the checker knows slow ones', () => {
  const slow = ['(a+)+b', String.raw`\s+$`, '^([0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]*)$'].map((source) => ({
    at: 'here',
    source,
    flags: '',
  }))
  expect(slow.filter((literal) => slowParts(literal).length > 0)).toEqual(slow)
})

test('regular expressions - none is made of text at run time but those that are known', () => {
  expect(made).toEqual(MADE_AT_RUN_TIME)
})
