import { parseArgs } from 'node:util'

import { SETTINGS } from './settings.ts'
import { mostSimilar } from '@signalbox/broker-core/internal'
import type { Given } from './value.ts'
import { readSettingText } from './value.ts'

/** The command line: the switches and the settings. */
export interface Flags {
  readonly help: boolean
  readonly version: boolean
  readonly printConfig: boolean
  /** The file that `--config` names. */
  readonly file: string | undefined
  readonly given: readonly Given[]
  readonly problems: readonly string[]
}

const SWITCHES = ['help', 'version', 'print-config']

/** Reads settings and switches from the command line. Reports every problem, not only the first. */
export function fromFlags(args: readonly string[]): Flags {
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    tokens: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'v' },
      'print-config': { type: 'boolean' },
      config: { type: 'string', short: 'c' },
      ...Object.fromEntries(SETTINGS.map(({ flag }) => [flag, { type: 'string' as const }])),
    },
  })
  const settings = new Map(SETTINGS.map((setting) => [setting.flag, setting]))
  const switches = new Set<string>()
  const seen = new Set<string>()
  const given: Given[] = []
  const problems: string[] = []
  let file: string | undefined
  let afterUnknown = false

  for (const token of tokens) {
    // The word after an unknown flag is most likely its value: one problem is enough.
    if (token.kind === 'positional' && !afterUnknown) {
      problems.push(`${JSON.stringify(token.value)}: not a flag; allowed: the flags that --help lists`)
    }
    if (token.kind !== 'option') {
      afterUnknown = false
      continue
    }
    const { name, rawName, value, inlineValue } = token
    const setting = settings.get(name)
    afterUnknown = !setting && !SWITCHES.includes(name) && name !== 'config'
    if (seen.has(name)) {
      problems.push(`${rawName}: given more than once; allowed: once`)
    } else if (SWITCHES.includes(name)) {
      if (value === undefined) switches.add(name)
      else problems.push(`${rawName}: takes no value`)
    } else if (afterUnknown) {
      const meant = mostSimilar(name, [...settings.keys(), ...SWITCHES, 'config'])
      problems.push(
        `${rawName}: unknown flag${meant ? `; did you mean --${meant}?` : ''}; allowed: the flags that --help lists`,
      )
    } else if (value === undefined || (!inlineValue && value.startsWith('--'))) {
      problems.push(`${rawName}: a value is missing; write ${rawName}=VALUE`)
    } else if (setting) {
      given.push({ setting, value: readSettingText(setting, value), origin: `flag --${name}` })
    } else {
      file = value
    }
    seen.add(name)
  }
  return {
    help: switches.has('help'),
    version: switches.has('version'),
    printConfig: switches.has('print-config'),
    file,
    given,
    problems,
  }
}
