import { execFileSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { Metrics } from '../src/metrics/metrics.ts'
import { callAgent, register, startAgent } from './support/agent.ts'
import { DEPLOY, deployText, deployYaml } from './support/deploy.ts'
import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

interface Dashboard {
  readonly panels: readonly {
    readonly id: number
    readonly title: string
    readonly gridPos: { readonly x: number; readonly w: number }
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
  }[]
  readonly templating: { readonly list: readonly { readonly name: string }[] }
}

const RULES = (deployYaml('prometheus/signalbox-rules.yml') as Rules).groups.flatMap(({ rules }) => rules)
const DASHBOARD = JSON.parse(deployText('grafana/signalbox.json')) as Dashboard
const QUERIES = DASHBOARD.panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })))

/** The labels that Prometheus adds to every sample. */
const ADDED = ['job', 'instance']

/** The labels of each metric, with their values where the server has samples. */
type Known = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>

/** Returns the value of a key, which is added if it is missing. */
function entryOf<V>(map: Map<string, V>, key: string, make: () => V): V {
  const found = map.get(key) ?? make()
  map.set(key, found)
  return found
}

/** Reads a page of metrics. The labels of metrics without samples are those of their description. */
function readPage(page: string): Known {
  const known = new Map<string, Map<string, Set<string>>>()
  const labelsOf = (name: string) => entryOf(known, name, () => new Map<string, Set<string>>())
  const valuesOf = (name: string, label: string) => entryOf(labelsOf(name), label, () => new Set<string>())
  for (const [, name = '', labels = ''] of page.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    labelsOf(name)
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      valuesOf(name, label).add(value)
    }
  }
  using metrics = new Metrics()
  metrics.forAgents()
  for (const { name, type, labels } of metrics.describe()) {
    if (!page.includes(`# TYPE ${name} `)) continue
    const names = type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => `${name}${suffix}`) : [name]
    for (const each of names) for (const label of labels) valuesOf(each, label)
  }
  return known
}

/** Returns what an expression uses that the server does not have. */
function unknownIn(expr: string, known: Known): string[] {
  const selectors = [...expr.matchAll(/\b((?:broker|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)]
  const labels = new Set([...ADDED, ...selectors.flatMap(([, name = '']) => [...(known.get(name)?.keys() ?? [])])])
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/, */))
  return [
    ...selectors.flatMap(([, name = '', matchers = '']) => {
      const own = known.get(name)
      if (own === undefined) return [name]
      return [...matchers.matchAll(/(\w+)(=~?)"([^"]*)"/g)].flatMap(([, label = '', operator, value = '']) => {
        if (ADDED.includes(label)) return []
        const values = own.get(label)
        if (values === undefined) return [`${name}{${label}}`]
        const wanted = operator === '=~' ? value.split('|') : [value]
        return values.size === 0
          ? []
          : wanted.filter((one) => !values.has(one)).map((one) => `${name}{${label}="${one}"}`)
      })
    }),
    ...grouped.filter((label) => !labels.has(label)).map((label) => `by (${label})`),
  ]
}

/** The page of a server that did a bit of everything. */
async function pageOfBusyServer(): Promise<string> {
  const { http, api, broker } = await serve({ metrics: { queues: ['*'] } })
  const agent = await startAgent((_request, response) => void response.end('{"jsonrpc":"2.0","id":1,"result":"yes"}'))
  await register(http.url, { agent_id: 'known', name: 'Known', url: agent.url })
  await callAgent(http.url, 'known', 'message/send')
  await callAgent(http.url, 'nobody', 'message/send')
  await callTool(http.url, 'queue_send', { channel: 'orders', body: 'x' })
  await callTool(http.url, 'queue_send', { channel: 'orders', body: 'x', delay_seconds: 60 })
  const { queues } = broker.as({ clientId: 'worker' })
  const [delivery] = await queues.receive('orders')
  await queues.nack([delivery!.receipt])
  await queues.receive('orders')
  await callTool(http.url, 'events_publish', { channel: 'e', body: 'x' })
  return (await fetch(`${api.url}/metrics`)).text()
}

test('prometheus, grafana - every metric, label and value of the alerts and the dashboard exists', async () => {
  const known = readPage(await pageOfBusyServer())
  const missing = [
    ...RULES.map(({ alert, expr }) => [alert, unknownIn(expr, known)] as const),
    ...QUERIES.map(({ title, expr }) => [title, unknownIn(expr, known)] as const),
  ].filter(([, problems]) => problems.length > 0)
  expect(missing).toEqual([])
  expect(RULES.length).toBeGreaterThan(10)
  expect(QUERIES.length).toBeGreaterThan(30)
})

test('prometheus, grafana - the check finds a metric, a label and a value that do not exist', async () => {
  const known = readPage(await pageOfBusyServer())
  expect(unknownIn('sum(broker_queue_depths)', known)).toEqual(['broker_queue_depths'])
  expect(unknownIn('broker_queue_depth{channel="x"}', known)).toEqual(['broker_queue_depth{channel}'])
  expect(unknownIn('broker_queue_depth{state="ready"}', known)).toEqual(['broker_queue_depth{state="ready"}'])
  expect(unknownIn('sum by (channel) (broker_queue_depth)', known)).toEqual(['by (channel)'])
  expect(unknownIn('broker_errors_total{code=~"QUEUE_FULL|OTHER"}', known)).toEqual([
    'broker_errors_total{code="OTHER"}',
  ])
})

test('grafana - legends name labels that their query keeps, and panels do not overlap the edge', () => {
  for (const { expr, legendFormat } of QUERIES) {
    const kept = [...ADDED, ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/, */))]
    const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label)
    expect(kept).toEqual(expect.arrayContaining(named))
  }
  const ids = DASHBOARD.panels.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { gridPos } of DASHBOARD.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
  const variables = DASHBOARD.templating.list.map(({ name }) => `$${name}`)
  const used = new Set(QUERIES.flatMap(({ expr }) => expr.match(/\$[a-z]+/g) ?? []))
  expect(variables).toEqual(expect.arrayContaining([...used]))
})

function hasPromtool(): boolean {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

test.skipIf(!hasPromtool())('prometheus - promtool takes the rules, and the alerts fire as their tests say', () => {
  const folder = testFolder()
  cpSync(join(DEPLOY, 'prometheus'), folder, { recursive: true })
  const promtool =
    (...args: string[]) =>
    () =>
      execFileSync('promtool', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
  expect(promtool('check', 'rules', 'signalbox-rules.yml')).not.toThrow()
  expect(promtool('test', 'rules', 'signalbox-rules-tests.yml')).not.toThrow()
  expect(promtool('check', 'config', '--syntax-only', 'prometheus.yml')).not.toThrow()
})
