import { statSync } from 'node:fs'

import { messageOf, readSmallFileSync } from '@signalbox/broker-core/internal'
import { secretIn } from '@signalbox/http-kit/internal'

import type { Setting, SettingValue } from './settings.ts'
import { SETTINGS } from './settings.ts'
import type { Given } from './value.ts'
import { readSettingText } from './value.ts'

/** A setting whose value may be in a file, and the setting with the path of that file. */
export interface FileForm {
  readonly setting: Setting
  /** Its key is the key of the other setting with `File`: `secretFile` of `secret`. */
  readonly file: Setting
}

/** Every setting that can be given as a file. */
export const FILE_FORMS: readonly FileForm[] = SETTINGS.flatMap((setting) => {
  const file = SETTINGS.find(({ key }) => key === `${setting.key}File`)
  return file === undefined ? [] : [{ setting, file }]
})

/** The secrets that are read by their users, because they may change while the server runs. */
const READ_LATER: ReadonlySet<string> = new Set(['authentication.secret'])

/**
 * Reads the secrets that are given as files. `values` are the values of all settings, `isSet` returns whether one has
 * a value that is not the default.
 */
export function fromSecretFiles(
  values: ReadonlyMap<string, SettingValue>,
  isSet: (key: string) => boolean,
): { given: Given[]; problems: string[] } {
  const given: Given[] = []
  const problems: string[] = []
  for (const { setting, file } of FILE_FORMS) {
    const path = values.get(file.key)
    if (typeof path !== 'string' || path === '') continue
    if (isSet(setting.key)) {
      problems.push(`${file.key}: ${setting.key} is set too; allowed: one of ${setting.env} and ${file.env}`)
    } else if (!READ_LATER.has(setting.key)) {
      try {
        const secret = secretIn(readSmallFileSync(path).text)
        given.push({ setting, value: readSettingText(setting, oneLine(setting, secret)), origin: `file ${path}` })
      } catch (error) {
        const reason = messageOf(error)
        problems.push(
          `${file.key}: ${reason.startsWith('cannot read') ? reason : `${JSON.stringify(path)}: ${reason}`}`,
        )
      }
    }
  }
  return { given, problems }
}

/** A list may have one value on each line. */
function oneLine({ schema }: Setting, text: string): string {
  return schema.type === 'array' ? text.replaceAll(/\r?\n/g, ',') : text
}

/** Returns the files with secrets that every user of the machine can read, by the setting that names each. */
export function openSecretFiles(config: object): readonly { readonly env: string; readonly file: string }[] {
  // Windows has other permissions; the mode says nothing about them.
  if (process.platform === 'win32') return []
  return FILE_FORMS.flatMap(({ file: { path, env } }) => {
    const file = valueAt(config, path)
    return typeof file === 'string' && file !== '' && isReadableByAll(file) ? [{ env, file }] : []
  })
}

function isReadableByAll(file: string): boolean {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & 0o004) !== 0
}

function valueAt(config: object, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (section, name) => (typeof section === 'object' && section !== null ? Reflect.get(section, name) : undefined),
    config,
  )
}
