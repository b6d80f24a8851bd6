import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Git ignores this folder; nothing is installed. */
const FOLDER = join(import.meta.dirname, '../../.nats-server')

/** The folder to which {@link fetchDebianServer} fetches. */
const FETCHED = join(FOLDER, 'usr/sbin/nats-server')

/** Returns the fetched nats-server, or `undefined` if none was fetched. */
export function fetchedServer(): string | undefined {
  return existsSync(FETCHED) ? FETCHED : undefined
}

/**
 * Fetches Debian's newest nats-server (`unstable`) from the package source of this machine. Apt checks its signature.
 * It needs no root, installs nothing, and does not change the machine's package lists.
 * @throws Error if apt is missing or cannot reach its packages
 */
export function fetchDebianServer(): string {
  const format = '$(ORIGIN) $(REPO_URI)'
  const known = execFileSync('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], {
    encoding: 'utf8',
  })
  const archive = /^Debian (\S+)$/m.exec(known)?.[1]
  if (archive === undefined) throw new Error('this machine has no source of Debian packages')
  rmSync(FOLDER, { recursive: true, force: true })
  for (const folder of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(FOLDER, folder), { recursive: true })
  writeFileSync(join(FOLDER, 'sources.list'), `deb ${archive} unstable main\n`)
  const settings = [
    `Dir::Etc::SourceList=${join(FOLDER, 'sources.list')}`,
    'Dir::Etc::SourceParts=/dev/null',
    `Dir::State::Lists=${join(FOLDER, 'lists')}`,
    `Dir::Cache=${join(FOLDER, 'cache')}`,
    'Acquire::Languages=none',
    // As root, apt would otherwise download as a user that cannot write here.
    'APT::Sandbox::User=root',
  ].flatMap((setting) => ['-o', setting])
  const apt = (...command: string[]): unknown =>
    execFileSync('apt-get', ['-qq', ...settings, ...command], { cwd: FOLDER, stdio: ['ignore', 'ignore', 'inherit'] })
  apt('update')
  apt('download', 'nats-server')
  const archiveFile = readdirSync(FOLDER).find((name) => name.endsWith('.deb')) ?? ''
  execFileSync('dpkg', ['-x', archiveFile, '.'], { cwd: FOLDER, stdio: ['ignore', 'ignore', 'inherit'] })
  for (const leftover of ['lists', 'cache', archiveFile]) rmSync(join(FOLDER, leftover), { recursive: true })
  return FETCHED
}
