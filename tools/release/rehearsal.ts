import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import {
  configuredRegistry,
  isolatedEnvironment,
  nodeVersions,
  oldestSupported,
  ordinaryEnvironment,
  run,
} from './environment.ts'
import { tryConnector, tryServer } from './installed.ts'
import { startLocalRegistry } from './local-registry.ts'
import { releaseChange, releaseEverything } from './releases.ts'
import { RehearsalReport } from './report.ts'
import { ReleaseClone } from './workspace.ts'

export interface RehearsalOptions {
  readonly workspace: string
  /** Lines of Node, such as 24, whose newest version runs the release. The oldest supported version always runs it. */
  readonly nodeLines: readonly string[]
  readonly log: (line: string) => void
}

/**
 * The parts of a repository that a release changes: tags, manifests, the lock file, changelogs. Contributors rarely
 * change them during a rehearsal.
 */
async function releasedState(workspace: string): Promise<string> {
  const tags = await run('git', ['tag', '--list'], { cwd: workspace, env: ordinaryEnvironment() })
  const files = globSync(['package*.json', '{packages,apps}/*/{package.json,CHANGELOG.md}'], { cwd: workspace })
  return [tags, ...files.sort().map((file) => `${file}\n${readFileSync(join(workspace, file), 'utf8')}`)].join('\n')
}

/**
 * Releases HEAD into a local registry three times and runs the published packages. Resolves with the report also after
 * a failure.
 */
export async function rehearse(options: RehearsalOptions): Promise<RehearsalReport> {
  const report = new RehearsalReport(options.log)
  try {
    await runSteps(options, report)
  } catch (error) {
    report.expect('every step runs to its end', false, error instanceof Error ? error.message : String(error))
  }
  return report
}

async function runSteps({ workspace, nodeLines, log }: RehearsalOptions, report: RehearsalReport): Promise<void> {
  await using folder = await TemporaryFolder.create('release')
  const stateBefore = await releasedState(workspace)
  const uncommitted = await run('git', ['status', '--porcelain'], { cwd: workspace, env: ordinaryEnvironment() })
  if (uncommitted !== '') log(`Uncommitted changes are not rehearsed:\n${uncommitted}`)

  const registry = await report.step('start a local registry', async () => {
    const uplink = await configuredRegistry(workspace)
    const url = await startLocalRegistry(folder, uplink)
    report.line(`${url} in front of ${uplink}`)
    return url
  })
  const env = isolatedEnvironment(folder, registry)
  const clone = await report.step('clone HEAD and install', () =>
    ReleaseClone.create(workspace, folder.join('clone'), env),
  )
  for (const key of ['registry', '@signalbox:registry']) {
    const used = (await clone.npm('config', 'get', key)).trim()
    if (used !== registry)
      throw new Error(`${key} is ${used} in the clone; it must be ${registry}. Nothing was published.`)
  }

  await report.step('release everything', () => releaseEverything({ clone, report, registry }))
  await report.step('release a fix of the registry package', () =>
    releaseChange(
      { clone, report, registry },
      { name: '@signalbox/registry', subject: 'fix(registry): rehearse a fix', moves: 'patch' },
    ),
  )
  await report.step('release a breaking change of http-kit', () =>
    releaseChange(
      { clone, report, registry },
      { name: '@signalbox/http-kit', subject: 'feat(http-kit)!: rehearse a breaking change', moves: 'minor' },
    ),
  )
  await report.step('check what the releases committed', async () => {
    await clone.npm('ci', '--dry-run', '--loglevel=error')
    report.expect('the lock file fits the manifests', true)
    await run('npx', ['oxfmt', '--check'], { cwd: clone.path, env })
    report.expect('manifests and changelogs pass the format check', true)
    report.expect('no change is uncommitted', (await clone.git('status', '--porcelain')) === '')
  })

  const released = clone.versions().get('signalbox') ?? ''
  for (const node of await nodeVersions(workspace, [oldestSupported(workspace), ...nodeLines])) {
    await report.step(`install and run on Node ${node}`, async () => {
      await tryServer({ folder, env, report, node }, released)
      await tryConnector({ folder, env, report, node })
    })
  }
  report.expect('the working copy is unchanged', (await releasedState(workspace)) === stateBefore)
}
