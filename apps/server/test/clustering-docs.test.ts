import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { SETTINGS } from '../src/config/settings.ts'
import type { ComposeService } from './support/clustering-page.ts'
import { PAGE } from './support/clustering-page.ts'
import { Cli } from './support/cli.ts'
import { callTool } from './support/mcp.ts'
import { PATIENT, startNats } from './support/nodes.ts'

const { compose, natsConf, frontConf, manifests, chartValues } = PAGE
const [deployment, service] = manifests
const [container] = deployment.spec.template.spec.containers
const SETTING_NAMES = SETTINGS.map(({ env }) => env)
const NODES = Object.entries(compose.services).filter(([, { image }]) => image === 'signalbox')
const SERVERS = Object.entries(compose.services).filter(([, { image }]) => image.startsWith('nats:'))

/** A manifest gives a container only texts; YAML that means something else there is refused by the cluster. */
const podEnvironment = Object.fromEntries(container.env.map(({ name, value }) => [name, value]))

/** A loopback address for each host name, out of a network that no other test run is likely to have. */
function hostsOf(names: readonly string[]): Map<string, string> {
  const network = `127.${1 + Math.floor(Math.random() * 250)}.${Math.floor(Math.random() * 250)}`
  return new Map(names.map((name, i) => [name, `${network}.${10 + i}`]))
}

function withAddresses(text: string, hosts: ReadonlyMap<string, string>): string {
  return [...hosts].reduce((mapped, [name, address]) => mapped.replaceAll(`//${name}:`, `//${address}:`), text)
}

/** The file that a service mounts there, from the page, with what only a container has replaced. */
function writeNatsConf(address: string, hosts: ReadonlyMap<string, string>): string {
  const folder = testFolder()
  const file = join(folder, 'nats.conf')
  const text = withAddresses(natsConf, hosts)
    .replace('/data', JSON.stringify(join(folder, 'data')))
    .replace('0.0.0.0:', `${address}:`)
  writeFileSync(file, text)
  return file
}

function argumentsOf({ command = '', volumes = [] }: ComposeService, file: string): string[] {
  const [mounted = ''] = volumes.map((volume) => volume.split(':')[1] ?? '')
  return command.split(' ').map((argument) => (argument === mounted ? file : argument))
}

describe('what docs/guides/clustering.md shows to be copied', () => {
  test('compose file - each variable is a setting, each name a service, and each mounted file on the page', () => {
    expect(NODES).toHaveLength(3)
    expect(SERVERS).toHaveLength(3)
    for (const [, { environment = {} }] of NODES) {
      expect(SETTING_NAMES).toEqual(expect.arrayContaining(Object.keys(environment)))
      const hosts = String(environment['NATS_SERVERS'])
        .split(',')
        .map((server) => new URL(server).hostname)
      expect(hosts).toEqual(SERVERS.map(([name]) => name))
    }
    const routes = [...natsConf.matchAll(/nats-route:\/\/([\w-]+):(\d+)/g)]
    expect(routes.map(([, host]) => host)).toEqual(SERVERS.map(([name]) => name))
    expect(new Set(routes.map(([, , port]) => port))).toEqual(new Set([/listen: \S+:(\d+)/.exec(natsConf)?.[1]]))
    const mounted = Object.values(compose.services).flatMap(({ volumes = [] }) => volumes.map((v) => v.split(':')[0]))
    expect(new Set(mounted)).toEqual(new Set(['./nats.conf', './front.conf']))
  })

  test('front.conf - it balances over the nodes of the compose file, where they listen, and listens where they publish', () => {
    const upstream = [...frontConf.matchAll(/server ([\w-]+):(\d+);/g)]
    expect(upstream.map(([, host]) => host)).toEqual(NODES.map(([name]) => name))
    const byDefault = SETTINGS.find(({ env }) => env === 'HTTP_PORT')?.schema.default
    expect(new Set(upstream.map(([, , port]) => Number(port)))).toEqual(new Set([byDefault]))
    const [published] = compose.services['front']?.ports ?? []
    expect(frontConf).toContain(`listen ${published?.split(':')[1]};`)
  })

  test('manifests - selectors, ports and probes name what is there, and the environment is texts of settings', () => {
    expect([deployment.apiVersion, deployment.kind, service.apiVersion, service.kind]).toEqual([
      'apps/v1',
      'Deployment',
      'v1',
      'Service',
    ])
    expect(deployment.spec.template.metadata.labels).toMatchObject(deployment.spec.selector.matchLabels)
    expect(deployment.spec.template.metadata.labels).toMatchObject(service.spec.selector)
    const ports = container.ports.map(({ name }) => name)
    for (const { targetPort } of service.spec.ports) expect(ports).toContain(targetPort)
    for (const { httpGet } of [container.readinessProbe, container.livenessProbe]) expect(ports).toContain(httpGet.port)
    expect(SETTING_NAMES).toEqual(expect.arrayContaining(Object.keys(podEnvironment)))
    expect(Object.values(podEnvironment).map((value) => typeof value)).toEqual(container.env.map(() => 'string'))
    const shutdown = SETTINGS.find(({ env }) => env === 'SHUTDOWN_SECONDS')?.schema.default
    expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(shutdown))
    expect(chartValues.config.cluster.replicas).toBeGreaterThanOrEqual(Number(podEnvironment['NATS_REPLICAS']))
    expect(chartValues.config.merge.max_payload).toBe(16 * 1024 * 1024)
  })
})

// Whole networks of loopback addresses, for the ports that the page names, are Linux' alone.
describe.skipIf(NATS_SERVER === undefined || process.platform !== 'linux')(
  'what docs/guides/clustering.md shows, run',
  () => {
    test('nats.conf - nats-server takes it, with the command of each service', () => {
      const hosts = hostsOf(SERVERS.map(([name]) => name))
      for (const [name, definition] of SERVERS) {
        const file = writeNatsConf(hosts.get(name) ?? '', hosts)
        const run = () => execFileSync(NATS_SERVER ?? '', ['-t', ...argumentsOf(definition, file)], { stdio: 'pipe' })
        expect(run).not.toThrow()
      }
    })

    test('compose file - its servers and a node with its environment are a cluster that takes and gives messages', async () => {
      const hosts = hostsOf([...SERVERS, ...NODES].map(([name]) => name))
      for (const [name, definition] of SERVERS) {
        const address = hosts.get(name) ?? ''
        const file = writeNatsConf(address, hosts)
        const server = spawn(NATS_SERVER ?? '', [...argumentsOf(definition, file), '-a', address], { stdio: 'ignore' })
        onTestFinished(async () => {
          if (server.exitCode !== null) return
          const exited = once(server, 'exit')
          server.kill('SIGKILL')
          await exited
        })
      }
      const nodes = NODES.map(([name, { environment = {} }]) => {
        const address = hosts.get(name) ?? ''
        const given = Object.entries(environment).map(([key, value]) => [key, withAddresses(String(value), hosts)])
        // Each container has every address and port for itself.
        const own = { HTTP_HOST: address, API_HOST: address, STORE_PATH: testFolder() }
        expect(environment['HTTP_HOST']).toBe('0.0.0.0')
        return new Cli({ env: { ...(Object.fromEntries(given) as Record<string, string>), ...own } })
      })
      const ready = await Promise.all(nodes.map((node) => node.ready()))
      // The ports that the front, which is not run here, passes requests to.
      expect(ready.map(({ http }) => http)).toEqual(NODES.map(([name]) => `http://${hosts.get(name)}:9090`))
      const [one, two] = ready
      await callTool(one!.http, 'queue_send', { channel: 'q', body: 'through the cluster' })
      const { structured } = await callTool(two!.http, 'queue_receive', {
        channel: 'q',
        max_messages: 1,
        wait_timeout_seconds: 20,
      })
      expect(structured).toMatchObject({ messages: [{ body: 'through the cluster' }] })
      for (const node of nodes) expect(node.stdout).not.toMatch(/max_payload|stored by one NATS server/)
    }, 90_000)

    test('manifests - a node with the environment of the pod is alive while NATS is away, and ready when it is there', async () => {
      const nats = await startNats()
      await nats.stop()
      const [address = ''] = hostsOf(['pod']).values()
      const env = {
        ...(podEnvironment as Record<string, string>),
        NATS_SERVERS: nats.url,
        // One server stands for the chart's three.
        NATS_REPLICAS: '1',
        HTTP_HOST: address,
        API_HOST: address,
      }
      const node = new Cli({ env: { ...env, STORE_PATH: testFolder() } })
      const probe = async ({ httpGet: { path, port } }: typeof container.readinessProbe): Promise<number> => {
        const { containerPort } = container.ports.find(({ name }) => name === port)!
        return (await fetch(`http://${address}:${containerPort}${path}`)).status
      }
      await expect.poll(() => probe(container.livenessProbe).catch(() => 0), PATIENT).toBe(200)
      expect(await probe(container.readinessProbe)).toBe(503)
      await nats.start()
      await node.ready()
      expect(await probe(container.readinessProbe)).toBe(200)
      const [{ targetPort }] = service.spec.ports as [(typeof service.spec.ports)[number]]
      const { containerPort } = container.ports.find(({ name }) => name === targetPort)!
      const sent = await callTool(`http://${address}:${containerPort}`, 'queue_send', { channel: 'q', body: 'x' })
      expect(sent).toMatchObject({ isError: false })
    }, 60_000)
  },
)
