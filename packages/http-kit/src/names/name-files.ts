import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'

import { readSmallFile } from '@signalbox/broker-core/internal'

import { hostName } from '../outbound/addresses.ts'

/** The rules of this machine for names, which c-ares does not apply. */
export interface NameRules {
  /** The addresses of `/etc/hosts`, by name. */
  readonly hosts: ReadonlyMap<string, readonly LookupAddress[]>
  /** The domains that are appended to a name. */
  readonly search: readonly string[]
  /** The dots that a name must have to be asked as it is before the search domains are appended. */
  readonly ndots: number
  /** Differs after a change of `/etc/resolv.conf`, which may name other servers. */
  readonly resolverText: string
}

/** The paths of the files; a file that cannot be read counts as empty. */
export interface NameFilePaths {
  readonly hosts: string
  readonly resolver: string
}

const SYSTEM_FILES: NameFilePaths = {
  hosts:
    process.platform === 'win32'
      ? join(process.env['SystemRoot'] ?? 'C:/Windows', 'System32', 'drivers', 'etc', 'hosts')
      : '/etc/hosts',
  resolver: '/etc/resolv.conf',
}

/** The time after which the files are read again, in ms. They are a few lines long on nearly every machine. */
const LOOK_MS = 5_000

/** The largest `ndots`, as in the C library. */
const MAX_NDOTS = 15

/** The most search domains: Kubernetes allows 32. */
const MAX_SEARCH = 32

/** Reads `/etc/hosts` and `/etc/resolv.conf`, and notices their changes. */
export class NameFiles {
  readonly #paths: NameFilePaths
  readonly #lookMs: number
  #hostsText = ''
  #rules: NameRules = { hosts: new Map(), search: [], ndots: 1, resolverText: '' }
  #lookedAt = -Infinity
  #looking: Promise<void> | undefined

  constructor(paths: NameFilePaths = SYSTEM_FILES, lookMs = LOOK_MS) {
    this.#paths = paths
    this.#lookMs = lookMs
  }

  /** Resolves with the rules, which are at most a few seconds old. */
  async current(): Promise<NameRules> {
    if (performance.now() - this.#lookedAt >= this.#lookMs) {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined
      })
      await this.#looking
    }
    return this.#rules
  }

  async #look(): Promise<void> {
    const [hostsText, resolverText] = await Promise.all([textOf(this.#paths.hosts), textOf(this.#paths.resolver)])
    this.#lookedAt = performance.now()
    if (hostsText !== this.#hostsText || resolverText !== this.#rules.resolverText) {
      this.#rules = { hosts: hostsOf(hostsText), ...searchOf(resolverText), resolverText }
      this.#hostsText = hostsText
    }
  }
}

async function textOf(path: string): Promise<string> {
  try {
    return (await readSmallFile(path)).text
  } catch {
    return ''
  }
}

/** Returns the words of each line, without comments. */
function* linesOf(text: string, comment: RegExp): Iterable<readonly string[]> {
  for (const line of text.split('\n')) {
    const [content = ''] = line.split(comment, 1)
    const words = content.split(/\s/).filter((word) => word !== '')
    if (words.length > 1) yield words
  }
}

function hostsOf(text: string): ReadonlyMap<string, readonly LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>()
  for (const [address = '', ...names] of linesOf(text, /#/)) {
    const family = isIP(address)
    if (family === 0) continue
    for (const name of names.map(hostName)) {
      const known = hosts.get(name)
      if (known === undefined) hosts.set(name, [{ address, family }])
      else known.push({ address, family })
    }
  }
  return hosts
}

function searchOf(text: string): Pick<NameRules, 'search' | 'ndots'> {
  let search: readonly string[] = []
  let ndots = 1
  for (const [keyword, ...words] of linesOf(text, /[#;]/)) {
    // The last of both keywords counts.
    if (keyword === 'search') search = words
    else if (keyword === 'domain') search = words.slice(0, 1)
    else if (keyword === 'options') {
      const given = words.findLast((word) => /^ndots:[0-9]{1,3}$/.test(word))
      if (given !== undefined) ndots = Math.min(Number(given.slice('ndots:'.length)), MAX_NDOTS)
    }
  }
  const domains = search.map(hostName).filter((domain) => domain !== '')
  return { search: domains.slice(0, MAX_SEARCH), ndots }
}
