import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { WORKSPACE } from '@signalbox/testkit/signalbox-server'

/** A checkout of the workspace to measure. */
export interface Subject {
  readonly label: string
  readonly root: string
}

export const WORKING_TREE: Subject = { label: 'working tree', root: WORKSPACE }

/**
 * Returns the URL of a package's source in a checkout, for a worker to import: a package name would resolve to this
 * checkout.
 */
export function packageEntry(subject: Subject, name: string): string {
  return pathToFileURL(join(subject.root, 'packages', name, 'src/index.ts')).href
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: WORKSPACE, encoding: 'utf8' }).trim()
}

/** Returns the commit of the working tree, with `+` if files differ from it. */
export function workingCommit(): string {
  return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+')
}

/**
 * Checks a commit out into a temporary git worktree below `folder`. It uses this checkout's installed dependencies;
 * only the workspace's packages come from the commit.
 */
export function checkOut(commit: string, folder: string): Subject & Disposable {
  const root = join(folder, 'worktree')
  const label = git('rev-parse', '--short', '--verify', `${commit}^{commit}`)
  git('worktree', 'add', '--detach', '--quiet', root, label)
  linkDependencies(root)
  return { label, root, [Symbol.dispose]: () => void git('worktree', 'remove', '--force', root) }
}

function linkDependencies(root: string): void {
  const workspaces = ['packages', 'apps']
    .flatMap((parent) => readdirSync(join(root, parent)).map((name) => join(parent, name)))
    .concat('tools')
  const own = new Map<string, string>()
  for (const folder of workspaces) {
    const { name } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as { name: string }
    own.set(name, folder)
  }
  const target = join(root, 'node_modules')
  mkdirSync(join(target, '@signalbox'), { recursive: true })
  for (const name of readdirSync(join(WORKSPACE, 'node_modules'))) {
    if (name === '@signalbox' || own.has(name)) continue
    symlinkSync(join(WORKSPACE, 'node_modules', name), join(target, name))
  }
  for (const [name, folder] of own) symlinkSync(join(root, folder), join(target, name))
  for (const folder of own.values()) {
    try {
      readdirSync(join(WORKSPACE, folder, 'node_modules'))
    } catch {
      continue
    }
    symlinkSync(join(WORKSPACE, folder, 'node_modules'), join(root, folder, 'node_modules'), 'dir')
  }
}

/** Returns a name for files: the subject's label without blanks. */
export function fileLabel(subject: Subject): string {
  return basename(subject.label.replaceAll(' ', '-'))
}
