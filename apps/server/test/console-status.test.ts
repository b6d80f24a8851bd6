import { replaceFile, testFile } from '@signalbox/testkit/test-folder'
import { expect, test } from 'vitest'

import { fromFlags } from '../src/config/flags.ts'
import { loadConfig } from '../src/config/load.ts'
import { settingStatuses } from '../src/config/setting-statuses.ts'
import { callAgent, register, startAgent, withResult } from './support/agent.ts'
import { serve } from './support/server.ts'
import { governed, policyText } from './support/tokens.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

test('console - / of the management listener redirects browsers to the console, and no other client', async () => {
  const { api, http } = await serve()
  const redirected = await fetch(`${api.url}/`, { headers: BROWSER, redirect: 'manual' })
  expect([redirected.status, redirected.headers.get('location')]).toEqual([302, '/console/'])
  expect((await fetch(`${api.url}/`)).status).toBe(404)
  expect((await fetch(`${http.url}/`, { headers: BROWSER })).status).toBe(404)
  const page = await fetch(`${api.url}/console`, { headers: BROWSER })
  expect([page.status, new URL(page.url).pathname]).toEqual([200, '/console/'])
  const html = await page.text()
  const scripts = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, path]) => path)
  expect(scripts.length).toBeGreaterThanOrEqual(2)
  for (const path of scripts) {
    const response = await fetch(`${api.url}/console/${path}`)
    expect([path, response.status, response.headers.get('cache-control')]).toEqual([
      path,
      200,
      'public, max-age=31536000, immutable',
    ])
  }
})

test('console - CONSOLE_ENABLE=false serves no page', async () => {
  const { api } = await serve({ console: { enable: false } })
  expect((await fetch(`${api.url}/console/`, { headers: BROWSER })).status).toBe(404)
  expect((await fetch(`${api.url}/`, { headers: BROWSER })).status).toBe(404)
})

interface Setting {
  readonly key: string
  readonly value: unknown
  readonly origin: string
  readonly origin_detail: string
  readonly documentation: string
}

async function data<T>(url: string): Promise<T> {
  const answer = (await (await fetch(url)).json()) as { data: T }
  return answer.data
}

test('MGMT-17 - every setting has its source, and no secret is shown', async () => {
  const settings = testFile('http: { port: 9091 }\nlog: { level: warn }\n')
  const { config, origins } = await loadConfig({
    flags: fromFlags(['--config', settings, '--log-level=error']),
    env: { MAX_BODY_BYTES: '2000000', AUTHENTICATION_SECRET: 'a'.repeat(40), AUTHENTICATION_ENABLE: 'true' },
  })
  const list = settingStatuses(config, origins)
  const of = (key: string) => list.find((one) => one.key === key)
  expect(of('http.port')).toMatchObject({
    env: 'HTTP_PORT',
    value: 9091,
    default: 9090,
    origin: 'file',
    origin_detail: `file ${settings}`,
    documentation: expect.stringMatching(/docs\/reference\/configuration\.md#http_port$/),
  })
  expect(of('log.level')).toMatchObject({ value: 'error', origin: 'flag' })
  expect(of('maxBodyBytes')).toMatchObject({ origin: 'environment', origin_detail: 'environment MAX_BODY_BYTES' })
  expect(of('http.host')).toMatchObject({ value: '127.0.0.1', origin: 'default' })
  expect(of('authentication.secret')).toMatchObject({ value: '[hidden]' })
  expect(JSON.stringify(list)).not.toContain('aaaa')
})

test('MGMT-17 - settings of a program that mounts the server are listed too', async () => {
  const { api } = await serve({ maxBodyBytes: 1_048_576 })
  const { items } = await data<{ items: readonly Setting[] }>(`${api.url}/api/settings`)
  const of = (key: string) => items.find((one) => one.key === key)
  expect(of('maxBodyBytes')).toMatchObject({ value: 1_048_576, origin: 'program' })
  expect(of('shutdownSeconds')).toMatchObject({ value: 1, origin: 'program' })
  expect(of('api.host')).toMatchObject({ origin: 'default' })
})

test('MGMT-17 - the policy in force, and why a newer one is not', async () => {
  const config = governed({ actions: 'send', patterns: 'queues', channels: 'open' })
  const { api } = await serve(config)
  const security = () =>
    data<{ policy: { rules: number; since: string; failure: { reason: string } | null } }>(`${api.url}/api/security`)
  const before = await security()
  expect(before).toMatchObject({ shared: { authentication: false }, keys: null, policy: { rules: 1, failure: null } })
  const decide = () =>
    data<{ allowed: boolean }>(`${api.url}/api/policy/test?client=anonymous&action=send&pattern=queues&channel=open`)
  expect((await decide()).allowed).toBe(true)
  const { policyFile = '' } = config.authorization ?? {}
  replaceFile(policyFile, 'rules: [{}]')
  await expect.poll(async () => (await security()).policy.failure?.reason, { timeout: 20_000 }).toMatch(/rule 0/)
  expect((await decide()).allowed).toBe(true)
  replaceFile(policyFile, policyText())
  await expect.poll(async () => (await security()).policy.failure, { timeout: 20_000 }).toBe(null)
  expect((await security()).policy.since > before.policy.since).toBe(true)
  expect((await decide()).allowed).toBe(false)
})

test('MGMT-15 - calls of agents at the gateway', async () => {
  const { http, api } = await serve()
  const agent = await startAgent(withResult('yes'))
  await register(http.url, { agent_id: 'writer', name: 'Writer', url: agent.url })
  await callAgent(http.url, 'writer', 'tasks/get', { id: 'x' })
  await expect
    .poll(
      async () =>
        (await data<{ agents: readonly { agent_id: string }[] }>(`${api.url}/api/history`)).agents.map(
          ({ agent_id }) => agent_id,
        ),
      { timeout: 30_000 },
    )
    .toEqual(['writer'])
})
