import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { replaceFile, testFolder } from '@signalbox/testkit/test-folder'

import { createConfig } from '../src/config/load.ts'
import { openRoutingFile } from '../src/routing/routing-file.ts'
import { startServer } from '../src/server.ts'
import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'

const ARCHIVE = [{ key: 'orders', routes: 'events_store:archive' }]

function routingFile(table: unknown): string {
  const file = join(testFolder(), 'routing.json')
  writeFileSync(file, typeof table === 'string' ? table : JSON.stringify(table))
  return file
}

test('routing - ROUTING_FILE copies messages of MCP clients, and the metrics count the copies', async () => {
  const { http, api } = await serve({ routing: { file: routingFile(ARCHIVE) } })
  await callTool(http.url, 'queue_send', { channel: 'orders', body: 'two coffees' })
  const { text } = await callTool(http.url, 'events_store_read', { channel: 'archive', max_messages: 10 })
  expect(JSON.parse(text)).toMatchObject([{ body: 'two coffees', sequence: 1 }])
  const page = await (await fetch(`${api.url}/metrics`)).text()
  expect(page).toContain('broker_routed_messages_total 1\n')
  expect(page).toContain('broker_routing_failures_total{reason="cycle"} 0\n')
})

test('routing - a changed file is applied, a bad one is reported and changes nothing', async () => {
  const file = routingFile(ARCHIVE)
  const lines: { msg: string; problems?: string[] }[] = []
  const told = async (count: number) => {
    await expect.poll(() => lines.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(count)
  }
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const routes = openRoutingFile(file, log, 20)
  onTestFinished(() => routes[Symbol.dispose]())

  replaceFile(file, '[{"key": "(", "routes": "topics:x", "to": 1}]')
  await told(1)
  expect(lines[0]?.msg).toBe('routing table not reloaded: the previous table remains in force')
  expect(lines[0]?.problems).toHaveLength(3)
  expect(routes.routing.table.rules.map((rule) => rule.key)).toEqual(['orders'])

  replaceFile(file, JSON.stringify([{ key: 'invoices', routes: 'queues:work' }]))
  await told(2)
  expect(lines[1]?.msg).toBe('routing table reloaded')
  expect(routes.routing.table.rules.map((rule) => rule.key)).toEqual(['invoices'])
})

test.each([
  ['no JSON', '[', 'is not JSON; allowed: an array of {key, keyType, routes}'],
  ['no table', '{}', 'it must be an array of {key, keyType, routes}'],
  ['a bad entry', '[{"key": "a", "routes": "queues:_AGENTS_.x"}]', 'entry 0: '],
])('routing - a file that holds %s stops the start', async (_what, text, problem) => {
  const config = createConfig({ routing: { file: routingFile(text) }, log: { level: 'silent' } })
  await expect(startServer(config)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    problems: [expect.stringContaining(problem)],
  })
})

test('routing - a file that is not there stops the start', async () => {
  const config = createConfig({ routing: { file: join(testFolder(), 'none') }, log: { level: 'silent' } })
  await expect(startServer(config)).rejects.toThrow(/routing\.file: cannot read ".*none" \(ENOENT\)/)
})
