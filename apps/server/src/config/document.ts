import { commandLines, COMMANDS } from '@signalbox/cli'

import { withoutPasswords } from '../engine/engines.ts'
import { derivedDefaults } from './limits.ts'
import type { LoadedConfig } from './load.ts'
import { FILE_FORMS } from './secret-files.ts'
import type { Setting, SettingValue } from './settings.ts'
import { allowedText, HIDDEN, SETTING_GROUPS, SETTINGS } from './settings.ts'

const WIDTH = 100

/** Returns the text of `--help`. */
export function helpText(): string {
  const lines = [
    'Usage: signalbox [flags]',
    '       signalbox COMMAND [options]',
    '',
    'Starts the broker: MCP, agents and CloudEvents on the shared listener, probes and metrics on the management listener.',
    '',
    'Commands (signalbox COMMAND --help prints the options of one, with an example)',
    ...commandLines(COMMANDS),
    '',
    'Flags',
    '  -c, --config FILE    read settings from a YAML file',
    '  --print-config       print the effective settings and the source of each, and exit',
    '  -h, --help           print this and exit',
    '  -v, --version        print the version and exit',
    '',
    'Every setting is a flag, an environment variable and a key of the file. The last one wins: default, file, environment, flag.',
    'Separate the values of a list with commas.',
  ]
  for (const { title, settings } of SETTING_GROUPS) {
    lines.push('', title)
    for (const { flag, env, key, schema } of settings) {
      lines.push(`  --${flag} VALUE    ${env}    ${key}`)
      lines.push(...wrapped(schema.description.replaceAll('`', ''), WIDTH - 6).map((line) => `      ${line}`))
      lines.push(`      Default: ${defaultText(schema.default)}. Allowed: ${allowedText(schema)}.`)
    }
  }
  lines.push(
    '',
    'Exit codes: 0 stopped by a signal, 1 could not start or failed, 2 a setting is unknown or not allowed.',
    'Of commands: 0 done, 1 failed, 2 the line is invalid, 3 nothing there or no answer in time, 4 refused, 5 unreachable.',
    '',
  )
  return lines.join('\n')
}

/** Returns the text of `docs/reference/configuration.md`. */
export function configurationPage(): string {
  const lines = [
    '# Configuration',
    '',
    '<!-- Generated from apps/server/src/config/schema.ts by `npm run docs -w signalbox`. Do not edit. -->',
    '',
    ...wrapped(
      'After this page you can set every option of the server. Every setting is an environment variable, a flag and a key of a YAML file. The same setting in each form:',
      WIDTH,
    ),
    '',
    '```sh',
    'HTTP_PORT=9091 npm start',
    '```',
    '',
    '```sh',
    'npm start -- --http-port=9091',
    '```',
    '',
    '```yaml',
    '# signalbox.yaml, for npm start -- --config signalbox.yaml',
    'http:',
    '  port: 9091',
    '```',
    '',
    ...wrapped(
      'If a setting is given more than once, a flag wins over the environment, the environment over the file, and the file over the default.',
      WIDTH,
    ),
    '',
    '- **Lists** are separated by commas. The file also accepts YAML lists.',
    '- **`--print-config`** prints the effective settings and the source of each, for use with `--config`.',
    '- **`--help`** lists all settings.',
    '- **Keys** of the file may be in upper or lower case.',
    '',
    ...wrapped(
      'An invalid value, an unknown key or an unknown flag stops the start with exit code 2. stderr has one line for each, with the value and the allowed values. Unknown environment variables with a prefix of Signalbox (`AUTHENTICATION_`, `STORE_`, `QUEUE_`, `CORS_`, `NATS_`, `CONNECTORS…`, …) are errors too. Variables that Kubernetes sets for services (`STORE_SERVICE_HOST`) are ignored.',
      WIDTH,
    ),
    '',
    ...wrapped(
      'Other variables that look like a misspelt setting, such as `HTTP_PRT`, have no effect. The log of the start names them with the nearest setting.',
      WIDTH,
    ),
  ]
  for (const { title, settings } of SETTING_GROUPS) {
    lines.push('', `## ${title === 'Signalbox' ? 'General' : title}`, '')
    for (const setting of settings) lines.push(...entry(setting))
    lines.pop()
  }
  return `${lines.join('\n')}\n`
}

function entry({ key, env, flag, schema }: Setting): string[] {
  return [
    `### \`${env}\``,
    '',
    ...wrapped(schema.description, WIDTH),
    '',
    `- key \`${key}\`, flag \`--${flag}\``,
    `- default: ${defaultText(schema.default, '`')}`,
    `- allowed: ${allowedText(schema).replaceAll('*', String.raw`\*`)}`,
    '',
  ]
}

/** @param quote The mark before and after a value */
function defaultText(value: SettingValue, quote = ''): string {
  const text = typeof value === 'object' ? value.join(', ') : String(value)
  return text === '' ? 'empty' : `${quote}${text}${quote}`
}

function wrapped(text: string, width: number): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line.length + word.length + 1 > width && line !== '') lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines
}

/**
 * Returns the effective configuration as a YAML file for `--config`, with the source of each value
 * as a comment. Secrets are masked.
 */
export async function configText({ config, origins }: LoadedConfig): Promise<string> {
  const { Document, isScalar, isSeq } = await import('yaml')
  const document = new Document(withoutPasswords(config))
  for (const { path, key, schema } of SETTINGS) {
    // Read from a file, which the next start reads again.
    if (FILE_FORMS.some(({ setting, file }) => setting.key === key && origins.get(file.key) !== 'default')) {
      document.deleteIn(path)
      continue
    }
    if (schema.secret && document.getIn(path) !== '') document.setIn(path, HIDDEN)
    const node = document.getIn(path, true)
    if (isSeq(node)) node.flow = true
    const origin = origins.get(key)
    const derived = origin === 'default' && derivedDefaults().has(key) ? ', derived from the memory' : ''
    if (isScalar(node) || isSeq(node)) node.comment = ` ${origin}${derived}`
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false })
}
