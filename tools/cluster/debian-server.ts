import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Git ignores it; nothing is installed. */
const FOLDER = join(import.meta.dirname, '../../.nats-server')

/** Where {@link fetchDebianServer} puts it. */
const FETCHED = join(FOLDER, 'usr/sbin/nats-server')

/** The nats-server that was fetched before; undefined when none was. */
export function fetchedServer(): string | undefined {
  return existsSync(FETCHED) ? FETCHED : undefined
}

/**
 * Fetches the newest nats-server that Debian has, that of `unstable`, from where this machine has its packages from. Apt
 * checks its signature. Needs no rights, installs nothing, and leaves the machine's own lists of packages alone.
 * @throws Error where there is no apt, or it does not reach its packages
 */
export function fetchDebianServer(): string {
  const format = '$(ORIGIN) $(REPO_URI)'
  const known = execFileSync('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], {
    encoding: 'utf8',
  })
  const archive = /^Debian (\S+)$/m.exec(known)?.[1]
  if (archive === undefined) throw new Error('this machine has no packages of Debian')
  rmSync(FOLDER, { recursive: true, force: true })
  for (const folder of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(FOLDER, folder), { recursive: true })
  writeFileSync(join(FOLDER, 'sources.list'), `deb ${archive} unstable main\n`)
  const settings = [
    `Dir::Etc::SourceList=${join(FOLDER, 'sources.list')}`,
    'Dir::Etc::SourceParts=/dev/null',
    `Dir::State::Lists=${join(FOLDER, 'lists')}`,
    `Dir::Cache=${join(FOLDER, 'cache')}`,
    'Acquire::Languages=none',
    // Root would otherwise hand the download to a user who cannot write here.
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
