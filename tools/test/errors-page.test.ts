import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { BROKER_ERRORS } from '@signalbox/broker-core'
import { CE_ERRORS } from '@signalbox/connector-cloudevents'
import { MCP_CODES } from '@signalbox/connector-mcp'
import { EVENTS_CODES } from '@signalbox/connector-mcp/events'
import { EMBEDDED_ENGINE_ERRORS } from '@signalbox/engine-embedded'
import { NATS_ENGINE_ERRORS } from '@signalbox/engine-nats'
import { JSON_RPC_CODES } from '@signalbox/http-kit'
import { MANAGEMENT_ERRORS } from '@signalbox/management-api'
import { REGISTRY_ERRORS } from '@signalbox/registry'
import { SERVER_ERRORS } from 'signalbox'
import { expect, test } from 'vitest'

const page = readFileSync(join(import.meta.dirname, '../../docs/reference/errors.md'), 'utf8')
/** Reasons, not codes: a reason can share its name with a code of another surface. */
const OFFICIAL = /^## Errors of official A2A calls$.*?(?=^## )/ms
const official = OFFICIAL.exec(page)?.[0] ?? ''
const listed = [...page.replace(OFFICIAL, '').matchAll(/^\|.*?`([A-Z_]+)`/gm)].map(([, code]) => code)

test('errors - the page lists every code there is, once, and no other', () => {
  const codes = [
    BROKER_ERRORS,
    JSON_RPC_CODES,
    MCP_CODES,
    EVENTS_CODES.sep,
    CE_ERRORS,
    REGISTRY_ERRORS,
    MANAGEMENT_ERRORS,
    EMBEDDED_ENGINE_ERRORS,
    NATS_ENGINE_ERRORS,
    SERVER_ERRORS,
  ].flatMap((table) => Object.keys(table))
  expect(new Set(listed)).toEqual(new Set(codes))
  expect(listed).toHaveLength(codes.length)
})

test('errors - the page gives each JSON-RPC code its number', () => {
  for (const [name, code] of Object.entries(JSON_RPC_CODES))
    expect(page).toMatch(new RegExp(`\\| ${code} +\\| \`${name}\` `))
})

test('errors - the page has the reason of every error of official A2A calls', () => {
  const folder = join(import.meta.dirname, '../../packages/connector-a2a/src')
  const sources = globSync('**/*.ts', { cwd: folder }).map((file) => readFileSync(join(folder, file), 'utf8'))
  const raised = sources.flatMap((source) =>
    [...source.matchAll(/(?:NativeError\([^,]+,\s*|errorDetails\(|reason: )'([A-Z_]+)'/g)].map(([, reason]) => reason),
  )
  expect(raised.length).toBeGreaterThan(15)
  expect(new Set(raised.filter((reason) => !official.includes(`\`${reason}\``)))).toEqual(new Set())
})

test('errors - the page has both codes of each error of events', () => {
  const { sep, sketch } = EVENTS_CODES
  const rows = [...page.matchAll(/^\| (-320[12]\d) +\| (-320[12]\d) +\| `([A-Z_]+)`/gm)].map(([, ...row]) => row)
  const names = Object.keys(sep) as (keyof typeof sep)[]
  expect(rows).toEqual(names.map((name) => [String(sep[name]), String(sketch[name]), name]))
})
