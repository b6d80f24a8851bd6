import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

import { parseAllDocuments } from 'yaml'
import { testFile } from '@signalbox/testkit/test-folder'
import { describe, expect, test } from 'vitest'

import { fromFlags } from '../src/config/flags.ts'
import { loadConfig } from '../src/config/load.ts'
import { DEPLOY, deployText, deployYaml, filesIn, SETTING_NAMES } from './support/deploy.ts'
import { issuer } from './support/tokens.ts'

const CHART = join(DEPLOY, 'kubernetes/signalbox')

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string }
}

interface Workload {
  readonly spec: {
    readonly replicas: number
    readonly selector: { readonly matchLabels: object }
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[]
    readonly template: {
      readonly metadata: { readonly labels: object }
      readonly spec: {
        readonly terminationGracePeriodSeconds: number
        readonly securityContext: object
        readonly volumes: readonly { readonly name: string; readonly secret?: { readonly defaultMode: number } }[]
        readonly containers: readonly {
          readonly env: readonly { readonly name: string; readonly value: unknown }[]
          readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
          readonly securityContext: object
          readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
          readonly startupProbe: Probe
          readonly livenessProbe: Probe
          readonly readinessProbe: Probe
        }[]
      }
    }
  }
}

function hasHelm(): boolean {
  try {
    execFileSync('helm', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Renders the chart. Returns the objects by their kinds. */
function render(...set: readonly string[]): ReadonlyMap<string, readonly unknown[]> {
  const args = ['template', 'box', CHART, ...set.flatMap((value) => ['--set', value])]
  const text = execFileSync('helm', args, { encoding: 'utf8', stdio: 'pipe' })
  // As Kubernetes reads YAML: 0440 is octal.
  const objects = parseAllDocuments(text, { version: '1.1' }).map(
    (document) => document.toJS() as { kind: string } | null,
  )
  return Map.groupBy(
    objects.filter((object) => object !== null),
    ({ kind }) => kind,
  )
}

function workload(objects: ReadonlyMap<string, readonly unknown[]>, kind: string) {
  const [found] = (objects.get(kind) ?? []) as readonly Workload[]
  const pod = found!.spec.template.spec
  return { ...found!.spec, pod, container: pod.containers[0]! }
}

const JWKS = 'settings.AUTHENTICATION_JWKS_URL=https://id.example.com/jwks'
const EVERYTHING = [
  'engine=nats',
  'secrets.tokenKey.name=keys',
  'secrets.natsServers.name=nats',
  'secrets.natsCa.name=nats',
  'secrets.cardKeys.name=cards',
  'tls.http.secretName=tls',
  'tls.management.secretName=tls',
  'policy=rules: []',
  'ingress.enabled=true',
  'serviceMonitor.enabled=true',
]

test('kubernetes - the settings of the values are settings, and texts', () => {
  const { settings, replicas } = deployYaml('kubernetes/signalbox/values.yaml') as {
    readonly settings: Readonly<Record<string, unknown>>
    readonly replicas: number
  }
  expect(SETTING_NAMES).toEqual(expect.arrayContaining(Object.keys(settings)))
  expect(Object.values(settings).every((value) => typeof value === 'string')).toBe(true)
  expect(replicas).toBeGreaterThan(1)
})

test('kubernetes - names and hosts are quoted: YAML reads 123 as a number, and *.example.com as an alias', () => {
  const bare = filesIn(join(CHART, 'templates'))
    .map((name) => deployText(`kubernetes/signalbox/templates/${name}`))
    .flatMap((text) =>
      text.match(/\b(?:name|serviceName|serviceAccountName|secretName|host|instance): \{\{[^|}]*\}\}(?:$|,| \})/gm),
    )
    .filter((found) => found !== null)
  // The names of settings are none of the values.
  expect(bare).toEqual(['name: {{ $name }},'])
})

describe.skipIf(!hasHelm())('kubernetes - the chart', () => {
  test.each([
    ['StatefulSet', [JWKS]],
    ['Deployment', EVERYTHING],
  ])('a %s asks for tokens on both listeners, with settings that exist', (kind, set) => {
    const { container } = workload(render(...set), kind)
    const names = container.env.map(({ name }) => name)
    expect(SETTING_NAMES).toEqual(expect.arrayContaining(names))
    expect(new Set(names).size).toBe(names.length)
    expect(container.env.every(({ value }) => typeof value === 'string')).toBe(true)
    expect(container.env).toContainEqual({ name: 'AUTHENTICATION_ENABLE', value: 'true' })
    expect(container.env).toContainEqual({ name: 'API_AUTHENTICATION_ENABLE', value: 'true' })
  })

  test.each([
    ['StatefulSet', [JWKS], 'HTTP'],
    ['Deployment', EVERYTHING, 'HTTPS'],
  ])('the pod of a %s is restricted, probed, and has time to stop', (kind, set, scheme) => {
    const { pod, container, selector, template } = workload(render(...set), kind)
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(template.metadata.labels).toMatchObject(selector.matchLabels)
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe]
    expect(probes.map(({ httpGet }) => httpGet)).toEqual(
      ['/ping', '/ping', '/ready'].map((path) => ({ path, port: 'http', scheme })),
    )
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(25 + 4)
    const volumes = [...pod.volumes.map(({ name }) => name), kind === 'StatefulSet' ? 'store' : '']
    expect(volumes).toEqual(expect.arrayContaining(container.volumeMounts.map(({ name }) => name)))
    const modes = pod.volumes.flatMap(({ secret }) => (secret ? [secret.defaultMode] : []))
    expect(modes.every((mode) => mode === 0o440)).toBe(true)
  })

  test('every file that a setting names is mounted', () => {
    const { container } = workload(render(...EVERYTHING), 'Deployment')
    const mounts = container.volumeMounts.map(({ mountPath }) => mountPath)
    const files = container.env.filter(({ name }) => name.endsWith('_FILE')).map(({ value }) => String(value))
    expect(files).toHaveLength(9)
    expect(files.filter((path) => !mounts.some((mount) => path.startsWith(`${mount}/`)))).toEqual([])
  })

  test('the environment of the pod is a valid configuration', async () => {
    const key = testFile(issuer().pem)
    for (const [kind, set] of [
      ['StatefulSet', [JWKS]],
      [
        'Deployment',
        [...EVERYTHING.filter((value) => !value.startsWith('secrets.nats')), 'settings.NATS_SERVERS=nats://nats:4222'],
      ],
    ] as const) {
      const { container } = workload(render(...set), kind)
      const env = Object.fromEntries(container.env.map(({ name, value }) => [name, String(value)]))
      if ('AUTHENTICATION_KEY_FILE' in env) env['AUTHENTICATION_KEY_FILE'] = key
      const { config } = await loadConfig({ flags: fromFlags([]), env })
      expect(config.api.authentication.enable).toBe(true)
    }
  })

  test('the embedded engine has one pod with a disk, NATS a budget for disruptions', () => {
    const embedded = render(JWKS)
    expect(workload(embedded, 'StatefulSet')).toMatchObject({
      replicas: 1,
      volumeClaimTemplates: [{ metadata: { name: 'store' } }],
    })
    expect([...embedded.keys()].toSorted()).toEqual(['NetworkPolicy', 'Service', 'ServiceAccount', 'StatefulSet'])
    expect([...render(...EVERYTHING).keys()].toSorted()).toEqual([
      'ConfigMap',
      'Deployment',
      'Ingress',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'Service',
      'ServiceAccount',
      'ServiceMonitor',
    ])
  })

  test('an ingress can have a host with a wildcard', () => {
    const [ingress] =
      render(...EVERYTHING, 'ingress.host=*.example.com', 'ingress.tlsSecretName=tls').get('Ingress') ?? []
    expect(ingress).toMatchObject({
      spec: { rules: [{ host: '*.example.com' }], tls: [{ hosts: ['*.example.com'], secretName: 'tls' }] },
    })
  })

  test.each([
    [[], 'there are no keys for tokens'],
    [[JWKS, 'engine=other'], 'allowed: embedded, nats'],
    [[JWKS, 'engine=nats'], 'the engine is nats and has no servers'],
    [[JWKS, 'settings.API_AUTHENTICATION_ENABLE=false'], 'settings.API_AUTHENTICATION_ENABLE: the chart sets it'],
    [
      [JWKS, 'settings.AUTHENTICATION_SECRET=x'],
      'settings.AUTHENTICATION_SECRET: the chart sets it, or it is a secret',
    ],
    [[JWKS, 'settings.QUEUE_MAX_BYTES=5'], 'settings.QUEUE_MAX_BYTES is not a text'],
  ])('the values %j are refused', (set, problem) => {
    expect(() => render(...set)).toThrow(problem)
  })
})
