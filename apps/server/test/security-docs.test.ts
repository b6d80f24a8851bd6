import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { PolicyAction, ResourceType } from '@signalbox/broker-core'
import { Authorization, POLICY_ACTIONS, RESOURCE_TYPES } from '@signalbox/broker-core'
import { expect, onTestFinished, test } from 'vitest'
import { testFile, testFolder } from '@signalbox/testkit/test-folder'

import { fromFlags } from '../src/config/flags.ts'
import { loadConfig } from '../src/config/load.ts'
import { policyParser } from '../src/security/policy-file.ts'
import { startServer } from '../src/server.ts'
import { certificate, fetchTls, tlsClient } from './support/tls.ts'

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/guides/security.md'), 'utf8')

/** The YAML on the page that holds this text. */
function yamlWith(text: string): string {
  const found = [...PAGE.matchAll(/```yaml\n([^]*?)```/g)]
    .map(([, yaml = '']) => yaml)
    .find((yaml) => yaml.includes(text))
  if (found === undefined) throw new Error(`docs/guides/security.md has no YAML with ${text}`)
  return found
}

test('S1, S4, S8 - the hardened configuration of docs/guides/security.md starts, and is closed', async () => {
  const policy = testFile(yamlWith('rules:'))
  const yaml = yamlWith('# signalbox.yaml')
    .replace('/etc/signalbox/policy.yaml', policy)
    .replace('/etc/signalbox/tls.crt', certificate('server.crt'))
    .replace('/etc/signalbox/tls.key', certificate('server.key'))
    .replace('/var/lib/signalbox', testFolder())
  expect(yaml).not.toContain('/etc/')
  const flags = fromFlags(['--config', testFile(yaml), '--http-host=127.0.0.1', '--http-port=0', '--api-port=0'])
  const { config } = await loadConfig({ flags, env: { LOG_LEVEL: 'silent' } })
  const server = await startServer(config)
  onTestFinished(() => server.close())
  const { http, api } = server
  const call = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
  }
  expect((await fetchTls(`${http.url}/mcp`, tlsClient(), call)).text).toContain('"code":-32010')
  expect((await fetchTls(`${http.url}/ready`, tlsClient())).status).toBe(200)
  expect((await fetch(`${api.url}/metrics`)).status).toBe(401)
})

test('S4 - the policy of docs/guides/security.md matches its comments', async () => {
  const parse = await policyParser()
  const authorization = new Authorization(parse(yamlWith('rules:')))
  const permits = (clientId: string, action: PolicyAction, pattern: ResourceType, channel: string) =>
    authorization.permits({ clientId }, action, pattern, channel)
  expect(permits('payroll', 'send', 'queues', 'payroll.june')).toBe(true)
  expect(permits('shop-1', 'send', 'queues', 'orders')).toBe(true)
  expect(permits('shop-1', 'receive', 'queues', 'orders')).toBe(false)
  expect(permits('kitchen', 'receive', 'queues', 'orders')).toBe(true)
  expect(permits('assistant-1', 'list', 'queues', 'orders')).toBe(true)
  expect(permits('assistant-1', 'list', 'queues', 'payroll.june')).toBe(false)
  expect(permits('assistant-1', 'call', 'agents', 'helper-1')).toBe(true)
  expect(permits('assistant-1', 'call', 'agents', 'payroll')).toBe(false)
})

test('S4 - docs/guides/security.md lists every action and pattern', () => {
  for (const action of POLICY_ACTIONS) expect(PAGE).toContain(`| \`${action}\``)
  for (const pattern of RESOURCE_TYPES) expect(PAGE).toContain(`\`${pattern}\``)
})
