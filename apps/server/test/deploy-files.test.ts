import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

import { AddressList, ALWAYS_REFUSED, ipAddress } from '@signalbox/http-kit/internal'
import { parse } from 'yaml'
import { describe, expect, test } from 'vitest'
import { nodeArgsOf, startSignalbox, WORKSPACE } from '@signalbox/testkit/signalbox-server'
import { testFile, testFolder } from '@signalbox/testkit/test-folder'
import { testServer } from '@signalbox/testkit/test-server'

import { fromFlags } from '../src/config/flags.ts'
import { loadConfig } from '../src/config/load.ts'
import { SETTINGS } from '../src/config/settings.ts'
import { runCli } from './support/cli.ts'
import { DEPLOY, deployText, deployYaml, SETTING_NAMES } from './support/deploy.ts'
import { serve } from './support/server.ts'
import { certificate } from './support/tls.ts'
import { issuer } from './support/tokens.ts'

interface Compose {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly image: string
        readonly build?: string
        readonly networks?: Readonly<Record<string, { readonly aliases?: readonly string[] } | null>>
        readonly environment?: Readonly<Record<string, string>>
        readonly volumes?: readonly string[]
        readonly ports?: readonly string[]
        readonly stop_grace_period?: string
        readonly read_only?: boolean
        readonly cap_drop?: readonly string[]
      }
    >
  >
  readonly volumes: object
}

const EMBEDDED = deployYaml('compose/embedded/compose.yaml') as Compose
const NATS = deployYaml('compose/nats/compose.yaml') as Compose
const DOCKERFILE = deployText('docker/Dockerfile')
const MANIFEST = JSON.parse(readFileSync(join(DEPLOY, '..', 'apps', 'server', 'package.json'), 'utf8')) as {
  readonly bin: { readonly signalbox: string }
}

/** The version that all files name; the build replaces it by the version of the package. */
const { appVersion: VERSION } = deployYaml('kubernetes/signalbox/Chart.yaml') as { readonly appVersion: string }

/** The variables that the image sets. */
const IMAGE_ENVIRONMENT = Object.fromEntries(
  [...(/^ENV (.*)$/m.exec(DOCKERFILE.replaceAll('\\\n', ' '))?.[1] ?? '').matchAll(/([A-Z_]+)=(\S+)/g)].map(
    ([, name, value]) => [String(name), String(value)],
  ),
)

const NODES = [...Object.values(EMBEDDED.services), ...Object.values(NATS.services)].filter(({ image }) =>
  image.startsWith('signalbox'),
)

/** Runs the health check of the image, and resolves with its exit code. */
async function check(env: Record<string, string>, path: string): Promise<number | null> {
  const child = spawn(process.execPath, [join(DEPLOY, 'docker/healthcheck.mjs'), path], { env, stdio: 'ignore' })
  await once(child, 'exit')
  return child.exitCode
}

const LINUX = process.platform === 'linux'

test.runIf(LINUX)(
  'npm start - the server has fewer threads for collections than the machine has processors',
  async () => {
    await using server = await startSignalbox({ storePath: testFolder(), instrumented: false })
    const tasks = `/proc/${server.process.pid}/task`
    const names = readdirSync(tasks).map((task) => readFileSync(join(tasks, task, 'comm'), 'utf8').trim())
    expect(names.filter((name) => name === 'V8Worker')).toHaveLength(Math.max(1, availableParallelism() - 1))
  },
)

describe('deploy/docker', () => {
  test('image - two stages, a user that is not root, a health check, and node as process 1', () => {
    const instructions = DOCKERFILE.replaceAll('\\\n', ' ')
      .split('\n')
      .filter((line) => /^[A-Z]+ /.test(line))
      .map((line) => line.split(' ')[0])
    expect(instructions.filter((name) => name === 'FROM')).toHaveLength(2)
    const last = instructions.slice(instructions.lastIndexOf('FROM'))
    expect(last.indexOf('USER')).toBeGreaterThan(last.indexOf('RUN'))
    expect(last).toEqual(expect.arrayContaining(['HEALTHCHECK', 'STOPSIGNAL', 'VOLUME', 'EXPOSE', 'LABEL']))
    expect(DOCKERFILE).toMatch(/^USER 1000:1000$/m)
    const [, entry = '[]'] = /^ENTRYPOINT (.*)$/m.exec(DOCKERFILE) ?? []
    expect(JSON.parse(entry)).toEqual([
      'node',
      ...nodeArgsOf(WORKSPACE),
      join('/app/node_modules/signalbox', MANIFEST.bin.signalbox),
    ])
    expect(DOCKERFILE).not.toMatch(/:latest|^ADD /m)
    expect(DOCKERFILE).toContain(`SIGNALBOX_VERSION=${VERSION}\n`)
  })

  test('image - both base images can be replaced by ones with a digest', () => {
    const bases = [...DOCKERFILE.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
    expect(bases).toEqual(['${BUILD_IMAGE}', '${RUN_IMAGE}'])
    for (const base of ['BUILD_IMAGE', 'RUN_IMAGE']) expect(DOCKERFILE).toMatch(new RegExp(`^ARG ${base}=node:`, 'm'))
  })

  test('image - without keys for tokens the server does not start', async () => {
    expect(IMAGE_ENVIRONMENT).toMatchObject({ AUTHENTICATION_ENABLE: 'true', API_AUTHENTICATION_ENABLE: 'true' })
    const names = Object.keys(IMAGE_ENVIRONMENT).filter((name) => name !== 'NODE_ENV')
    expect(SETTING_NAMES).toEqual(expect.arrayContaining(names))
    const { code, stderr } = await runCli({ env: { ...IMAGE_ENVIRONMENT, STORE_PATH: testFolder() } })
    expect(code).toBe(2)
    expect(stderr).toContain('authentication: it is on and has no keys')
  })

  test('image - the health check asks the shared listener, and reports its state', async () => {
    const { http } = await serve()
    const { port } = await testServer((_request, response) => response.writeHead(503).end())
    expect(await check({ HTTP_PORT: String(http.port) }, '/ready')).toBe(0)
    expect(await check({ HEALTHCHECK_URL: http.url }, '/ping')).toBe(0)
    expect(await check({ HTTP_PORT: String(port) }, '/ready')).toBe(1)
    expect(await check({ HEALTHCHECK_URL: 'https://127.0.0.1:1' }, '/ready')).toBe(1)
  })

  test('image - the health check presents a certificate to a listener that requires one', async () => {
    const files = { certFile: certificate('server.crt'), keyFile: certificate('server.key') }
    const { http } = await serve({ security: { ...files, caFile: certificate('authority.crt') } })
    const env = { HTTP_PORT: String(http.port), SECURITY_CERT_FILE: files.certFile }
    expect(await check(env, '/ready')).toBe(1)
    const client = { HEALTHCHECK_CERT_FILE: certificate('client.crt'), HEALTHCHECK_KEY_FILE: certificate('client.key') }
    expect(await check({ ...env, ...client }, '/ready')).toBe(0)
  })
})

describe('deploy/compose', () => {
  test('chart - the pods cannot connect to addresses of cloud credentials, except for names', () => {
    const { networkPolicy } = deployYaml('kubernetes/signalbox/values.yaml') as {
      readonly networkPolicy: {
        readonly enabled: boolean
        readonly egress: readonly { readonly ipBlock?: { readonly cidr: string; readonly except: readonly string[] } }[]
      }
    }
    expect(networkPolicy.enabled).toBe(true)
    const blocks = networkPolicy.egress.flatMap(({ ipBlock }) => ipBlock ?? [])
    expect(blocks.map(({ cidr }) => cidr)).toEqual(['0.0.0.0/0', '::/0'])
    const excepted = new AddressList(
      'except',
      blocks.flatMap(({ except }) => except),
    )
    for (const text of [
      '169.254.169.254',
      '100.100.100.200',
      '168.63.129.16',
      '192.0.0.192',
      'fd00:ec2::254',
      'fd20:ce::254',
    ]) {
      const address = ipAddress(text)
      expect(address !== undefined && excepted.hasAddress(address) && ALWAYS_REFUSED.hasAddress(address), text).toBe(
        true,
      )
    }
    const template = deployText('kubernetes/signalbox/templates/network-policy.yaml')
    expect(template).toContain('policyTypes: [Ingress{{ if .Values.networkPolicy.egress }}, Egress{{ end }}]')
    expect(template).toContain('port: 53, protocol: UDP')
  })

  test('compose - each variable is a setting, and the management listener asks for tokens', () => {
    expect(NODES).toHaveLength(4)
    for (const { environment = {} } of NODES) {
      expect(SETTING_NAMES).toEqual(expect.arrayContaining(Object.keys(environment)))
      expect(environment).toMatchObject({ AUTHENTICATION_ENABLE: 'true', API_AUTHENTICATION_ENABLE: 'true' })
    }
  })

  test('compose - each node is read-only, without capabilities, and has longer to stop than a shutdown takes', () => {
    for (const node of NODES) {
      expect(node).toMatchObject({ read_only: true, cap_drop: ['ALL'], stop_grace_period: '35s' })
      expect(node.image).toBe(`signalbox:${VERSION}`)
    }
  })

  test('compose - ports are published on this machine only', () => {
    for (const { services } of [EMBEDDED, NATS]) {
      const ports = Object.values(services).flatMap((service) => service.ports ?? [])
      expect(ports.length).toBeGreaterThan(0)
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/)
    }
  })

  test('compose - every volume of a service is declared, or a file of the folder or of its script', () => {
    const missing = [['embedded', EMBEDDED] as const, ['nats', NATS] as const].flatMap(([folder, compose]) => {
      const script = deployText(`compose/${folder}/setup.sh`)
      const declared = Object.keys(compose.volumes)
      const sources = Object.values(compose.services).flatMap(({ volumes = [] }) =>
        volumes.map((v) => v.split(':')[0]!),
      )
      return sources.filter((source) => {
        if (!source.startsWith('./')) return !declared.includes(source)
        return !existsSync(join(DEPLOY, 'compose', folder, source)) && !script.includes(source.slice(2))
      })
    })
    expect(missing).toEqual([])
  })

  test('compose - one service of a file builds the image, from the folder of the Dockerfile', () => {
    for (const [folder, { services }] of [['embedded', EMBEDDED] as const, ['nats', NATS] as const]) {
      const builds = Object.values(services).flatMap(({ build, image }) =>
        build === undefined ? [] : [[build, image]],
      )
      expect(builds).toEqual([['../../docker', `signalbox:${VERSION}`]])
      expect(existsSync(join(DEPLOY, 'compose', folder, '../../docker/Dockerfile'))).toBe(true)
    }
  })

  test('compose - the proxy asks for the nodes that run, and leaves one that does not answer', () => {
    const conf = deployText('compose/nats/front.conf')
    const [, name, port] = /set \$nodes (\w+):(\d+);\n *proxy_pass http:\/\/\$nodes;/.exec(conf) ?? []
    const nodes = Object.values(NATS.services).filter(({ image }) => image.startsWith('signalbox'))
    expect(nodes.map(({ networks }) => networks?.['outer']?.aliases)).toEqual([[name], [name], [name]])
    expect(Number(port)).toBe(SETTINGS.find(({ env }) => env === 'HTTP_PORT')?.schema.default)
    expect(Number(/proxy_connect_timeout (\d+)s;/.exec(conf)?.[1])).toBeLessThan(5)
    expect(NATS.services['front']?.ports).toEqual([`127.0.0.1:9090:${/listen (\d+);/.exec(conf)?.[1]}`])
  })

  test('compose - a node with the environment of the embedded file is a valid configuration', async () => {
    const [node] = NODES
    const key = testFile(issuer().pem)
    const env = { ...IMAGE_ENVIRONMENT, ...node?.environment, AUTHENTICATION_KEY_FILE: key }
    const { config } = await loadConfig({ flags: fromFlags([]), env })
    expect(config).toMatchObject({ engine: 'embedded', api: { authentication: { enable: true } } })
  })
})

describe('deploy/systemd', () => {
  const unit = deployText('systemd/signalbox.service')

  test('systemd - the settings are valid, and the management listener asks for tokens', async () => {
    const path = join(DEPLOY, 'systemd/signalbox.yaml')
    const { config } = await loadConfig({ flags: fromFlags([`--config=${path}`]), env: {} })
    expect(config.authentication.enable).toBe(true)
    expect(config.api.authentication.enable).toBe(true)
    expect(config.store.path).toBe(`/var/lib/${/^StateDirectory=(.*)$/m.exec(unit)?.[1]}`)
    expect(parse(deployText('systemd/signalbox.yaml'))).toBeTypeOf('object')
  })

  test('systemd - the unit starts the published command, and gives a shutdown its time', () => {
    expect(unit).toContain(`signalbox@${VERSION}\n`)
    expect(unit).toMatch(
      /^ExecStart=\/usr\/bin\/node --v8-pool-size=0 \/opt\/signalbox\/node_modules\/signalbox\/dist\/bundle\/main\.js --config \S+$/m,
    )
    const variables = [...unit.matchAll(/^#?Environment=([A-Z_]+)=/gm)].map(([, name]) => String(name))
    expect(SETTING_NAMES).toEqual(expect.arrayContaining(variables.filter((name) => name !== 'NODE_ENV')))
    const shutdown = SETTINGS.find(({ env }) => env === 'SHUTDOWN_SECONDS')?.schema.default
    expect(Number(/^TimeoutStopSec=(\d+)s$/m.exec(unit)?.[1])).toBeGreaterThan(Number(shutdown) + 4)
  })

  test.skipIf(!hasCommand('systemd-analyze'))('systemd - systemd takes the unit and finds it well protected', () => {
    // The unit of an installation: without the command in its place, systemd refuses it.
    const score = execFileSync(
      'systemd-analyze',
      ['security', '--offline=true', join(DEPLOY, 'systemd/signalbox.service')],
      {
        encoding: 'utf8',
      },
    )
    expect(Number(/Overall exposure level for \S+: ([\d.]+)/.exec(score)?.[1])).toBeLessThan(2)
  })
})

function hasCommand(name: string): boolean {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
