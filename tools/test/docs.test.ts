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
import { expect, onTestFinished, test } from 'vitest'

import { blocks, PageServer, shown } from '../testing/pages.ts'

/** Sections whose commands a reader pastes one after the other. */
const SESSIONS = [
  { page: 'docs/getting-started.md', section: 'First messages', commands: 3 },
  { page: 'docs/guides/send-and-receive.md', section: 'A worker', commands: 3 },
  { page: 'docs/guides/publish-and-subscribe.md', section: 'Stored events', commands: 2 },
] as const

test.each(SESSIONS)('docs - the commands of $page print the documented output', async ({ page, section, commands }) => {
  const server = await PageServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const session = blocks(page, section)
  expect(session.filter(({ language }) => language === 'sh')).toHaveLength(commands)
  for (const [i, command] of session.entries()) {
    if (command.language !== 'sh') continue
    const next = session[i + 1]
    const pattern = next === undefined || next.language === 'sh' ? /^$/ : shown(next.text)
    expect(await server.run(command), command.text).toMatch(pattern)
  }
})

test('docs - the operator finds the deepest queue, inspects and purges it, and finds the purge in the audit log', async () => {
  const server = await PageServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const session = blocks('docs/reference/management.md', 'A session')
  expect(session.filter(({ language }) => language === 'sh')).toHaveLength(5)
  for (const [i, command] of session.entries()) {
    if (command.language !== 'sh') continue
    const answer = session[i + 1]
    const pattern = answer?.language === 'json' ? shown(answer.text) : /^$/
    const first = server.run(command)
    // Reading may be done again: what others see of an action comes a moment after its answer.
    const read = command.text.includes('/api/actions/') ? () => first : () => server.run(command)
    await expect.poll(read, { timeout: 10_000, message: command.text }).toMatch(pattern)
  }
})

const CLUSTERING = readFileSync(join(import.meta.dirname, '../../docs/guides/clustering.md'), 'utf8')

// While NATS is away /health is 500 on every node: as a liveness probe it would have them all restarted, over and over.
test('clustering page - the manifest asks a node whether it is ready, and kills it only when its process is dead', () => {
  expect(CLUSTERING).toMatch(/readinessProbe: \{ httpGet: \{ path: \/ready, /)
  expect(CLUSTERING).toMatch(/livenessProbe: \{ httpGet: \{ path: \/ping, /)
})

const errorsPage = readFileSync(join(import.meta.dirname, '../../docs/reference/errors.md'), 'utf8')
/** Reasons, not codes: a reason can share its name with a code of another surface. */
const OFFICIAL = /^## Errors of official A2A calls$.*?(?=^## )/ms
const official = OFFICIAL.exec(errorsPage)?.[0] ?? ''
const listed = [...errorsPage.replace(OFFICIAL, '').matchAll(/^\|.*?`([A-Z_]+)`/gm)].map(([, code]) => code)

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
    expect(errorsPage).toMatch(new RegExp(`\\| ${code} +\\| \`${name}\` `))
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
  const rows = [...errorsPage.matchAll(/^\| (-320[12]\d) +\| (-320[12]\d) +\| `([A-Z_]+)`/gm)].map(([, ...row]) => row)
  const names = Object.keys(sep) as (keyof typeof sep)[]
  expect(rows).toEqual(names.map((name) => [String(sep[name]), String(sketch[name]), name]))
})
