import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

import { createBroker } from '@signalbox/broker-core'
import { brokerTaskStore } from '@signalbox/connector-mcp'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { markdownTable } from '@signalbox/testkit/figures'
import { serveHttp } from '@signalbox/testkit/loopback'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { McpEndpoint } from '../../packages/connector-mcp/src/handler.ts'
import { resolveMcpOptions } from '../../packages/connector-mcp/src/options.ts'
import type { Scenario, Subject, SuiteName } from './scenarios.ts'
import { FIXTURE_TOOLS, INPUT_TOOLS, TASK_TOOLS } from './tools.ts'

/** The outcome of one scenario. */
interface ScenarioReport {
  readonly scenario: Scenario
  readonly passed: number
  /** Checks that failed as known, by id. */
  readonly known: readonly string[]
  /** Texts of the warnings: recommendations of the specification that the server does not follow. */
  readonly warnings: readonly string[]
  /** Failures that are not known, and known failures that passed. */
  readonly problems: readonly string[]
}

/** Runs scenarios one after another, against a started server and a started fixture host. */
export async function conform(
  scenarios: readonly Scenario[],
  log: (line: string) => void,
): Promise<readonly ScenarioReport[]> {
  await using folder = await TemporaryFolder.create('conformance-server')
  await using server = await startSignalbox({ storePath: folder.path, instrumented: false })
  await using fixtures = await startFixtureHost()
  const urls: Readonly<Record<Subject, string>> = {
    connector: `${server.http}/mcp`,
    'connector + fixtures': fixtures.url,
  }
  const reports: ScenarioReport[] = []
  for (const scenario of scenarios) {
    const { suite, name, subject, version } = scenario
    const report = reportOf(scenario, await runScenario(suite, name, urls[subject], version))
    log(`${report.problems.length === 0 ? 'ok    ' : 'FAILED'} ${suite} ${version} ${name} (${subject})`)
    reports.push(report)
  }
  return reports
}

/** Starts the handler of the connector with the suite's tools instead of the broker's. */
async function startFixtureHost(): Promise<AsyncDisposable & { readonly url: string }> {
  await using opened = new AsyncDisposableStack()
  const folder = opened.use(await TemporaryFolder.create('conformance-store'))
  const engine = opened.adopt(await openEmbeddedEngine({ path: folder.path }), (open) => open.close())
  const { broker, system } = createBroker(engine)
  const tools = new Map([...FIXTURE_TOOLS, ...INPUT_TOOLS, ...TASK_TOOLS].map((tool) => [tool.definition.name, tool]))
  const tasks = { store: brokerTaskStore(system, { shared: false }), afterMs: 50 }
  const endpoint = new McpEndpoint(broker, resolveMcpOptions({ tasks }), tools)
  opened.defer(() => endpoint.close(0))
  const { url } = opened.use(await serveHttp((request, response) => endpoint.handle(request, response, undefined)))
  const resources = opened.move()
  return { url: `${url}/mcp`, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

/** Compares the checks of a scenario with its known failures. */
export function reportOf(scenario: Scenario, checks: readonly Check[]): ScenarioReport {
  const withStatus = (status: Check['status']): readonly Check[] => checks.filter((check) => check.status === status)
  const failed = withStatus('FAILURE')
  const failedIds = new Set(failed.map(({ id }) => id))
  const isKnown = ({ id }: Check): boolean => Object.hasOwn(scenario.known, id)
  const stale = Object.keys(scenario.known).filter((id) => !failedIds.has(id))
  return {
    scenario,
    passed: withStatus('SUCCESS').length,
    known: failed.filter(isKnown).map(({ id }) => id),
    warnings: withStatus('WARNING').map(lineOf),
    problems: [
      ...failed.filter((check) => !isKnown(check)).map(lineOf),
      ...stale.map((id) => `${id}: it is listed as a known failure, but did not fail`),
      ...(checks.length === 0 ? ['the scenario has no checks'] : []),
    ],
  }
}

function lineOf({ id, errorMessage }: Check): string {
  return errorMessage === undefined ? id : `${id}: ${errorMessage}`
}

/** Returns the reports as a table in Markdown, and below it the texts of problems, known failures and warnings. */
export function summary(reports: readonly ScenarioReport[]): string {
  const rows = reports.map(({ scenario, passed, known, warnings, problems }) => {
    const checks = passed + known.length + problems.length
    const { name, subject, suite, version } = scenario
    const result = problems.length > 0 ? 'FAILED' : known.length > 0 ? 'known failures' : 'passed'
    return [subject, suiteVersion(suite), version, name, `${passed}/${checks}`, String(warnings.length), result]
  })
  const notes = reports.flatMap(({ scenario, known, warnings, problems }) => [
    ...problems.map((text) => `- FAILED ${scenario.version} ${scenario.name}: ${text}`),
    ...known.map((id) => `- known ${scenario.version} ${scenario.name}: ${id}: ${scenario.known[id]}`),
    ...warnings.map((text) => `- warning ${scenario.version} ${scenario.name}: ${text}`),
  ])
  return [
    ...markdownTable(['subject', 'suite', 'revision', 'scenario', 'passed', 'warnings', 'result'], rows),
    '',
    ...notes,
    '',
  ].join('\n')
}

/** One check of a scenario, as the suite writes it to its results. */
interface Check {
  readonly id: string
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  readonly errorMessage?: string
}

const require = createRequire(import.meta.url)

const MANIFESTS: Readonly<Record<SuiteName, string>> = {
  '0.1': require.resolve('modelcontextprotocol-conformance-v01/package.json'),
  '0.2': require.resolve('@modelcontextprotocol/conformance/package.json'),
}

/** Returns the version of a suite's package. */
function suiteVersion(suite: SuiteName): string {
  const manifest = JSON.parse(readFileSync(MANIFESTS[suite], 'utf8')) as {
    readonly version: string
  }
  return manifest.version
}

/** Time for one scenario, in ms. */
const SCENARIO_MS = 60_000

/**
 * Runs one scenario against an endpoint.
 * @param version The protocol revision; the first suite has none
 * @throws Error if the suite reported no checks
 */
async function runScenario(
  suite: SuiteName,
  scenario: string,
  url: string,
  version?: string,
): Promise<readonly Check[]> {
  await using folder = await TemporaryFolder.create('conformance')
  const cli = join(dirname(MANIFESTS[suite]), 'dist', 'index.js')
  const args = ['server', '--url', url, '--scenario', scenario, '--output-dir', folder.path]
  // The suite lists extensions for no revision, and runs them only by force.
  const chosen = version === undefined || suite === '0.1' ? [] : ['--spec-version', version, '--force']
  const output = await outputOf([cli, ...args, ...chosen], folder.path)
  const [file] = globSync('**/checks.json', { cwd: folder.path })
  if (file === undefined) throw new Error(`${scenario}: the suite wrote no results: ${output.slice(-2000)}`)
  return JSON.parse(readFileSync(folder.join(file), 'utf8')) as readonly Check[]
}

/** Returns the output of a Node program. The exit code only repeats what its results say. */
function outputOf(args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd, timeout: SCENARIO_MS, maxBuffer: 2 ** 26 }, (_error, stdout, stderr) =>
      resolve(`${stdout}${stderr}`),
    )
  })
}
