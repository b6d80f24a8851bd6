import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { Cli, runCli } from './support/cli.ts'
import { DEPLOY, deployYaml } from './support/deploy.ts'
import { callTool } from './support/mcp.ts'

const NAMES = ['nats-1', 'nats-2', 'nats-3']

/** A loopback address for each server, out of a network that no other test run is likely to have. */
function addressesOf(names: readonly string[]): ReadonlyMap<string, string> {
  const network = `127.${1 + Math.floor(Math.random() * 250)}.${Math.floor(Math.random() * 250)}`
  return new Map(names.map((name, i) => [name, `${network}.${10 + i}`]))
}

function hasOpenssl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

// Whole networks of loopback addresses, for the ports that the files name, are Linux' alone.
describe.skipIf(NATS_SERVER === undefined || process.platform !== 'linux' || !hasOpenssl())(
  'deploy/compose/nats',
  () => {
    test('compose - three servers with the configuration and the secrets of the script are a cluster for the nodes', async () => {
      const folder = join(testFolder(), 'nats')
      cpSync(join(DEPLOY, 'compose/nats'), folder, { recursive: true })
      const addresses = addressesOf(NAMES)
      const env = { ...process.env, SERVERS: [...addresses.values()].join(' ') }
      const setUp = () => execFileSync('sh', [join(folder, 'setup.sh')], { env, stdio: 'pipe' })
      setUp()
      expect(setUp).toThrow(/exists; nothing is changed/)
      const secret = (name: string) => join(folder, 'secrets', name)
      expect(statSync(secret('nats/tls.key')).mode & 0o077).toBe(0)
      expect(statSync(secret('signalbox/nats-servers')).mode & 0o077).toBe(0)

      for (const [name, address] of addresses) {
        const text = [...addresses]
          .reduce(
            (conf, [host, own]) => conf.replace(`//${host}:`, `//${own}:`),
            readFileSync(join(folder, 'nats.conf'), 'utf8'),
          )
          .replaceAll('/etc/nats/secrets', join(folder, 'secrets/nats'))
          .replace('./secrets/passwords.conf', './secrets/nats/passwords.conf')
          .replace('/data', JSON.stringify(join(folder, name)))
          .replace('0.0.0.0:6222', `${address}:6222`)
          .replace('127.0.0.1:8222', `${address}:8222`)
        const conf = join(folder, `${name}.conf`)
        writeFileSync(conf, text)
        const server = spawn(NATS_SERVER ?? '', ['-c', conf, '-n', name, '-a', address], { stdio: 'ignore' })
        onTestFinished(async () => {
          if (server.exitCode !== null) return
          const exited = once(server, 'exit')
          server.kill('SIGKILL')
          await exited
        })
      }

      const compose = deployYaml('compose/nats/compose.yaml') as {
        readonly services: Readonly<Record<string, { readonly environment: Readonly<Record<string, string>> }>>
      }
      const environment = Object.fromEntries(
        Object.entries(compose.services['signalbox-1']?.environment ?? {}).map(([name, value]) => [
          name,
          value.replace('/run/signalbox', join(folder, 'secrets/signalbox')),
        ]),
      )
      const node = new Cli({
        env: { ...environment, HTTP_HOST: '127.0.0.1', API_HOST: '127.0.0.1', HTTP_PORT: '0', API_PORT: '0' },
      })
      const { http, api } = await node.ready()
      const { stdout } = await runCli({
        args: ['token', '--folder', secret('keys'), '--client-id', 'operator', '--roles', 'Admin'],
      })
      const headers = { authorization: `Bearer ${stdout.trim()}` }
      await callTool(http, 'queue_send', { channel: 'q', body: 'through the cluster' }, headers)
      const receive = { channel: 'q', max_messages: 1, wait_timeout_seconds: 20 }
      const { structured } = await callTool(http, 'queue_receive', receive, headers)
      expect(structured).toMatchObject({ messages: [{ body: 'through the cluster' }] })
      expect((await fetch(`${api}/metrics`)).status).toBe(401)
      expect((await fetch(`${api}/metrics`, { headers })).status).toBe(200)
      const warnings = node.lines().filter(({ level }) => level === 'warn')
      const texts = warnings.map(({ msg }) => String(msg)).join('\n')
      // Credentials, TLS, the size of messages, replicas, the modes of files.
      expect(texts).not.toMatch(/reached without|max_payload|stored by one|every user of this machine/)
    }, 90_000)
  },
)
