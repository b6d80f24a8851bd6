import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

/** The versions of the official suite, each in its own package. */
export type SuiteName = '0.1' | '0.2'

/** One check of a scenario, as the suite writes it to its results. */
export interface Check {
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
export function suiteVersion(suite: SuiteName): string {
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
export async function runScenario(
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
