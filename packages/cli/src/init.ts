import { existsSync } from 'node:fs'
import { cp, readdir } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'

import { messageOf } from '@signalbox/broker-core/internal'

import type { CommandCall } from './command.ts'
import { CommandError } from './errors.ts'

interface Kind {
  /** The folders of `deploy/` that are written. */
  readonly folders: readonly string[]
  /** The next step, in the folder that was written. */
  readonly next: string
}

/** The kinds of deployments, by the word of the command line. */
const KINDS: Readonly<Record<string, Kind>> = {
  docker: {
    folders: ['docker', 'compose'],
    next: 'cd compose/embedded && ./setup.sh && docker compose up -d --build; for a cluster cd compose/nats',
  },
  systemd: { folders: ['systemd'], next: 'follow the comments at the top of signalbox.service' },
  kubernetes: {
    folders: ['kubernetes'],
    next: 'put your values into values.yaml, then helm install signalbox kubernetes/signalbox -f values.yaml',
  },
  prometheus: { folders: ['prometheus'], next: 'follow the comments at the top of prometheus.yml' },
  grafana: { folders: ['grafana'], next: 'import signalbox.json, or use the provisioning files' },
  logs: { folders: ['logs'], next: 'follow the comments at the top of vector.yaml' },
}

/**
 * `signalbox init`: writes the files of a deployment into a folder, to be changed there. Overwrites nothing.
 * @throws CommandError CONFIG_INVALID; START_FAILED for a folder that cannot be written
 */
export async function initCommand({ line, io, host }: CommandCall): Promise<void> {
  const word = line.word(0)
  const kind = Object.hasOwn(KINDS, word) ? KINDS[word] : undefined
  if (kind === undefined) {
    throw new CommandError('CONFIG_INVALID', [
      `init: ${JSON.stringify(word)} is unknown; allowed are ${Object.keys(KINDS).join(', ')}`,
    ])
  }
  const target = resolve(line.words[1] ?? `signalbox-${word}`)
  const files = await filesOf(host.deployFolder(), kind, target)
  const taken = files.filter(({ to }) => existsSync(to))
  if (taken.length > 0) {
    throw new CommandError(
      'START_FAILED',
      taken.map(({ to }) => `init: ${to} exists; choose another folder, or remove it`),
    )
  }
  try {
    for (const { from, to } of files) await cp(from, to, { errorOnExist: true, force: false, recursive: true })
  } catch (error) {
    throw new CommandError('START_FAILED', [`init: ${target} cannot be written (${messageOf(error)})`], {
      cause: error,
    })
  }
  const written = files.map(({ to }) => shownPath(to))
  if (line.has('json')) {
    await io.stdout.write(`${JSON.stringify({ folder: shownPath(target), files: written, next: kind.next })}\n`)
    return
  }
  for (const file of written) await io.stdout.write(`${file}\n`)
  await io.stderr.write(`\nNext, in ${shownPath(target)}: ${kind.next}\n`)
}

function shownPath(path: string): string {
  const short = relative(process.cwd(), path)
  return short.startsWith('..') ? path : short || '.'
}

/** Returns the files of a kind. One folder is written without its name, several are written side by side. */
async function filesOf(
  source: string | undefined,
  kind: Kind,
  target: string,
): Promise<readonly { readonly from: string; readonly to: string }[]> {
  if (source === undefined) throw new CommandError('START_FAILED', ['init: this installation has no deployment files'])
  const nested = kind.folders.length > 1 || kind.folders.includes('kubernetes')
  const all = await Promise.all(
    kind.folders.map(async (name) => {
      const entries = await readdir(join(source, name), { recursive: true, withFileTypes: true })
      return entries
        .filter((entry) => entry.isFile() && !entry.name.endsWith('.tgz'))
        .map(({ parentPath, name: file }) => join(parentPath, file))
        .map((from) => ({ from, to: join(target, relative(nested ? source : join(source, name), from)) }))
    }),
  )
  return all.flat().toSorted((a, b) => a.to.localeCompare(b.to))
}
