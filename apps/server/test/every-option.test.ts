import { generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'

import { testFile, testFolder } from '@signalbox/testkit/test-folder'
import { expect, test } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import { createConfig } from '../src/config/load.ts'
import type { Config } from '../src/config/schema.ts'
import { SETTINGS } from '../src/config/settings.ts'
import { startServer } from '../src/server.ts'
import { certificate, fetchTls, tlsClient } from './support/tls.ts'
import { issuer, policyText } from './support/tokens.ts'

/** Returns a configuration that records the keys of the settings that are read from it. */
function recording(config: Config, read: Set<string>): Config {
  const section = <T extends object>(value: T, path: readonly string[]): T =>
    new Proxy(value, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name)
        if (typeof name === 'symbol') return member
        const here = [...path, name]
        read.add(here.join('.'))
        return typeof member === 'object' && member !== null && !Array.isArray(member) ? section(member, here) : member
      },
    })
  return section(config, [])
}

/** A configuration in which every feature is on. */
function everything(): PartialConfig {
  const tls = { certFile: certificate('server.crt'), keyFile: certificate('server.key') }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const cardKeysFile = testFile(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
  return {
    http: { port: 0 },
    api: { port: 0, authentication: { enable: true }, security: tls },
    console: {
      enable: true,
      oauth: { clientId: 'console', issuer: 'http://127.0.0.1:9', resource: 'https://broker.example.com/mcp' },
    },
    log: { level: 'silent' },
    shutdownSeconds: 1,
    store: { path: testFolder() },
    publicUrl: 'https://broker.example.com',
    security: tls,
    authentication: {
      enable: true,
      keyFile: testFile(issuer().pem),
      issuer: 'https://idp.example.com',
      audience: ['https://broker.example.com/mcp'],
      oauth: { enable: true },
    },
    authorization: { enable: true, policyFile: testFile(policyText({})) },
    routing: { file: testFile('[]') },
    webhooks: { enable: true, keyFile: join(testFolder(), 'webhooks.key') },
    metrics: { queues: ['*'] },
    agentCredentialsFile: testFile('{}'),
    agentsFile: testFile('[]'),
    connectors: {
      mcp: { events: true },
      a2a: { cardKeysFile, agentCaFile: certificate('authority.crt') },
    },
  }
}

test('settings - the server reads every setting that it offers', async () => {
  const read = new Set<string>()
  const server = await startServer(recording(createConfig(everything()), read))
  // The settings of the sign-in are read when an operator opens the page.
  await fetchTls(`${server.api.url}/api/sign_in`, tlsClient())
  await server.close()
  const cluster = createConfig({ http: { port: 0 }, api: { port: 0 }, log: { level: 'silent' }, engine: 'nats' })
  const stop = new AbortController()
  const starting = startServer(recording(cluster, read), { signal: stop.signal })
  await expect.poll(() => read.has('nats.servers')).toBe(true)
  stop.abort(new Error('enough'))
  await expect(starting).rejects.toThrow('enough')
  expect(SETTINGS.map(({ key }) => key).filter((key) => !read.has(key))).toEqual([])
})
