import { replaceFile, testFile, testFolder } from '@signalbox/testkit/test-folder'
import { expect, test } from 'vitest'

import type { SecurityEvent } from '../src/security/events.ts'
import { auditSecurity } from '../src/security/events.ts'
import { callAgent, register, startAgent, withResult } from './support/agent.ts'
import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'
import { governed, issuer, keySet, policyText, trusting } from './support/tokens.ts'

type Entry = Readonly<Record<string, unknown>>

async function audit(api: string, query: string, headers: Record<string, string> = {}): Promise<readonly Entry[]> {
  const response = await fetch(`${api}/api/audit${query}`, { headers })
  const { data } = (await response.json()) as { data: { items: readonly Entry[] } }
  return data.items
}

const EVENT = JSON.stringify({ specversion: '1.0', id: '1', source: '/test', type: 'test', data: 'x' })

test('AUDIT-2, S4 - denials of the policy, on every route, are in the audit log', async () => {
  const { http, api } = await serve(
    governed({ actions: 'register', patterns: 'agents', channels: 'writer' }, { channels: 'open' }),
  )
  const agent = await startAgent(withResult('yes'))
  await register(http.url, { agent_id: 'writer', name: 'Writer', url: agent.url })
  await callTool(http.url, 'queue_send', { channel: 'open', body: 'x' })
  await callTool(http.url, 'queue_send', { channel: 'by-tool', body: 'x' })
  await callTool(http.url, 'agent_send', { agent_id: 'writer', message: 'x' })
  const ce = await fetch(`${http.url}/ce/send/event-store?channel=by-ce`, {
    method: 'POST',
    headers: { 'content-type': 'application/cloudevents+json' },
    body: EVENT,
  })
  expect(ce.status).toBe(403)
  await callAgent(http.url, 'writer', 'tasks/get', { id: 'x' })
  expect((await fetch(`${http.url}/agents/writer`)).status).toBe(403)
  const other = await fetch(`${http.url}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent_id: 'other', name: 'Other', url: agent.url }),
  })
  expect(other.status).toBe(403)
  const denials = async () =>
    (await audit(api.url, '?outcome=denied')).map(
      ({ client, address, action, type = 'agents', channel, agent: id, code }) =>
        [client, address, action, type, channel ?? id, code].join(' '),
    )
  await expect
    .poll(denials, { timeout: 10_000 })
    .toEqual([
      'anonymous 127.0.0.1 register agents other FORBIDDEN',
      'anonymous 127.0.0.1 list agents writer FORBIDDEN',
      'anonymous 127.0.0.1 call agents writer FORBIDDEN',
      'anonymous 127.0.0.1 send events_store by-ce FORBIDDEN',
      'anonymous 127.0.0.1 call agents writer FORBIDDEN',
      'anonymous 127.0.0.1 send queues by-tool FORBIDDEN',
    ])
  expect(await audit(api.url, '?channel=by-*&outcome=failure')).toEqual([])
})

test('AUDIT-2 - policies, keys and certificates that are read again', async () => {
  const [one, two] = [issuer('one'), issuer('two')]
  const jwksFile = testFile(keySet(one))
  const policyFile = testFile(policyText({}))
  const { api } = await serve({
    authentication: { enable: true, jwksFile },
    authorization: { enable: true, policyFile },
  })
  const entry = async (action: string, outcome: string) =>
    (await audit(api.url, `?action=${action}&outcome=${outcome}`))[0]
  replaceFile(policyFile, policyText({}, { clients: 'x' }))
  replaceFile(jwksFile, keySet(one, two))
  await expect
    .poll(() => entry('reload_policy', 'success'), { timeout: 20_000 })
    .toMatchObject({ client: '', detail: `2 rules of ${policyFile}` })
  await expect.poll(() => entry('reload_keys', 'success'), { timeout: 20_000 }).toMatchObject({ client: '' })
  replaceFile(policyFile, '{"rules":[7]}')
  await expect
    .poll(() => entry('reload_policy', 'failure'), { timeout: 20_000 })
    .toMatchObject({ detail: expect.stringContaining('rule 0') })
}, 60_000)

test('AUDIT-2 - each security event is one audit entry, or a metric', () => {
  const events: readonly SecurityEvent[] = [
    { kind: 'keys.reloaded' },
    { kind: 'keys.failed', reason: 'down' },
    { kind: 'card_keys.reloaded', kids: ['a', 'b'] },
    { kind: 'card_keys.failed', reason: 'no keys' },
    { kind: 'policy.reloaded', file: 'p', rules: 1 },
    { kind: 'policy.refused', file: 'p', problems: ['rule 0: x', 'rule 1: y'] },
    { kind: 'certificates.reloaded', subject: 'CN=a', validTo: 'tomorrow' },
    { kind: 'certificates.refused', reason: 'no PEM' },
    { kind: 'authentication.failed', address: 'a', count: 1, reason: 'x' },
    { kind: 'handshake.failed', address: 'a', count: 1, reason: 'x' },
    { kind: 'connections.refused', address: 'a', count: 1, reason: 'x' },
  ]
  const recorded: unknown[] = []
  const tell = auditSecurity({ record: (entry) => recorded.push(entry) })
  for (const event of events) tell(event)
  const system = { client: '' }
  expect(recorded).toEqual([
    { ...system, action: 'reload_keys', outcome: 'success' },
    { ...system, action: 'reload_keys', outcome: 'failure', detail: 'down' },
    { ...system, action: 'reload_card_keys', outcome: 'success', detail: 'a, b' },
    { ...system, action: 'reload_card_keys', outcome: 'failure', detail: 'no keys' },
    { ...system, action: 'reload_policy', outcome: 'success', detail: '1 rules of p' },
    { ...system, action: 'reload_policy', outcome: 'failure', detail: 'p: rule 0: x; rule 1: y' },
    { ...system, action: 'reload_certificates', outcome: 'success', detail: 'CN=a, until tomorrow' },
    { ...system, action: 'reload_certificates', outcome: 'failure', detail: 'no PEM' },
  ])
})

test('AUDIT-4 - refused callers are one entry for each listener, for any calls', async () => {
  const one = issuer()
  const store = { path: testFolder() }
  const first = await serve({ ...trusting(one), store })
  const stolen = { authorization: await issuer().bearer('mallory') }
  for (const path of ['/agents', '/mcp', '/ce/subscribe/events?channel=x', '/a2a/x/stream']) {
    await (await fetch(first.http.url + path, { headers: stolen })).text()
  }
  for (const path of ['/api/snapshot', '/metrics']) await fetch(first.api.url + path, { headers: stolen })
  // What was gathered is written at the end, as at each minute's.
  await first.close()
  const { api } = await serve({ ...trusting(one), store })
  const admin = { authorization: await one.bearer('root', { roles: ['Admin'] }) }
  const entries = await audit(api.url, '?action=authentication_failed', admin)
  const common = { client: '', action: 'authentication_failed', outcome: 'denied', address: '127.0.0.1' }
  expect(entries.toSorted((a, b) => String(a['detail']).localeCompare(String(b['detail'])))).toMatchObject([
    { ...common, detail: 'on management', count: 2 },
    { ...common, detail: 'on shared', count: 4 },
  ])
})
