import type { RehearsalReport } from './report.ts'
import type { LockFile, ReleaseClone, Versions } from './workspace.ts'
import { lockFileProblems, rangesFor, readLockFile, withDependents } from './workspace.ts'

interface Rehearsal {
  readonly clone: ReleaseClone
  readonly report: RehearsalReport
  /** The URL of the target registry. */
  readonly registry: string
}

interface ChangeRelease {
  /** The package to change. */
  readonly name: string
  readonly subject: string
  /** The part of the version that must increase in the changed package. Its dependents increase their patch number. */
  readonly moves: 'minor' | 'patch'
}

function next(version: string, part: 'minor' | 'patch'): string {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  return part === 'minor' ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`
}

function printVersions({ clone, report }: Rehearsal, before: Versions): void {
  for (const [name, version] of clone.versions()) {
    const earlier = before.get(name) ?? version
    report.line(`${name.padEnd(34)} ${earlier} ${earlier === version ? '(unchanged)' : `-> ${version}`}`)
  }
}

/** Returns the section of a changelog that the last release wrote. */
function newest(changelog: string): string {
  return `${changelog.split(/\n(?=## )/)[0]?.trim() ?? ''}\n`
}

/** Expects the registry to have every version of the manifests as its newest, and the lock file to have its packages. */
async function expectPublished({ clone, report, registry }: Rehearsal, lockBefore: LockFile): Promise<void> {
  const published = [...clone.versions().keys()].map(async (name) => {
    const response = await fetch(`${registry}${encodeURIComponent(name)}`)
    const { 'dist-tags': tags } = (await response.json()) as { 'dist-tags'?: { latest?: string } }
    return `${name}@${tags?.latest ?? response.status}`
  })
  const wanted = [...clone.versions()].map(([name, version]) => `${name}@${version}`)
  report.expectSame('the registry has every version, as the newest', wanted, await Promise.all(published))
  const problems = lockFileProblems(lockBefore, readLockFile(clone.path))
  report.expect(
    'the lock file keeps its packages and contains no address of a registry',
    problems.length === 0,
    problems.join(', '),
  )
}

/**
 * Releases every package at HEAD. Before the first tag this is the first release, with the versions in the manifests.
 * Later it is an ordinary one, which also publishes unchanged packages, so that the empty registry has them.
 */
export async function releaseEverything(rehearsal: Rehearsal): Promise<void> {
  const { clone, report } = rehearsal
  const before = clone.versions()
  const lockBefore = readLockFile(clone.path)
  const released = (await clone.tags()).some((tag) => before.has(tag.slice(0, tag.lastIndexOf('@'))))
  const [version = ''] = new Set(before.values())
  if (!released) {
    report.expect('before the first release all manifests hold one version', new Set(before.values()).size === 1)
  }
  await clone.nx('release', ...(released ? [] : [version, '--first-release']), '--skip-publish')
  await clone.nx('release', 'publish')

  printVersions(rehearsal, before)
  const after = clone.versions()
  if (!released) report.expectSame('the first release keeps the versions', [version], after.values())
  const tags = await clone.tags()
  report.line(`tags: ${tags.join(' ')}`)
  const missing = [...after].map(([name, v]) => `${name}@${v}`).filter((tag) => !tags.includes(tag))
  report.expect('every package has the tag of its version', missing.length === 0, missing.join(' '))
  for (const name of after.keys()) {
    const lines = clone.changelog(name).split('\n').length
    report.expect(`${name} has a changelog (${lines} lines)`, lines > 3)
  }
  await expectPublished(rehearsal, lockBefore)
}

/** Commits a change of one package, releases, and expects that only this package and its dependents have new versions. */
export async function releaseChange(rehearsal: Rehearsal, change: ChangeRelease): Promise<void> {
  const { clone, report } = rehearsal
  const { name, subject, moves } = change
  const before = clone.versions()
  const tagsBefore = await clone.tags()
  const lockBefore = readLockFile(clone.path)
  const folder = clone.packages().get(name)?.folder
  if (folder === undefined) throw new Error(`${name} is not a published package`)
  const moving = withDependents(name, clone.packages())
  await clone.commit({ name, folder, subject })

  await clone.nx('release', '--skip-publish')
  // A publish that fails half-way has published some packages; the next one publishes the others.
  await clone.nx('release', 'publish', `--projects=${name}`)
  const resumed = await clone.nx('release', 'publish')
  report.expect('a repeated publish skips published versions', resumed.includes(`Skipped package "${name}"`), resumed)

  printVersions(rehearsal, before)
  const after = clone.versions()
  const changed = [...after].filter(([one, version]) => before.get(one) !== version).map(([one]) => one)
  report.expectSame(`only ${name} and its dependents have new versions`, moving, changed)
  const expected = [...before].map(([one, version]) => {
    if (!moving.has(one)) return `${one}@${version}`
    return `${one}@${next(version, one === name ? moves : 'patch')}`
  })
  report.expectSame(
    `${name} moves its ${moves} number, dependents their patch number`,
    expected,
    [...after].map(([one, version]) => `${one}@${version}`),
  )
  const tags = (await clone.tags()).filter((tag) => !tagsBefore.includes(tag))
  report.line(`new tags: ${tags.join(' ')}`)
  report.expectSame(
    'each new version has its tag',
    [...moving].map((one) => `${one}@${after.get(one)}`),
    tags,
  )
  for (const [dependent, { manifest }] of clone.packages()) {
    const stale = rangesFor(name, manifest).filter((range) => range !== `^${after.get(name)}`)
    if (rangesFor(name, manifest).length > 0) {
      report.expect(`${dependent} asks for ^${after.get(name)}`, stale.length === 0, stale.join(', '))
    }
  }
  for (const one of moving) {
    const entry = newest(clone.changelog(one))
    for (const line of entry.trim().split('\n')) if (line !== '') report.line(`  ${one} | ${line}`)
    const subjectText = subject.slice(subject.indexOf(': ') + 2)
    const wanted = one === name ? subjectText : `## ${after.get(one)}`
    report.expect(`the changelog of ${one} has "${wanted}"`, entry.includes(wanted), entry)
  }
  await expectPublished(rehearsal, lockBefore)
}
