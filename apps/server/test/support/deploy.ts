import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { parse } from 'yaml'

import { SETTINGS } from '../../src/config/settings.ts'
import { APP } from './cli.ts'

/** The folder with the deployment files. */
export const DEPLOY = join(APP, '..', '..', 'deploy')

/** The environment variables of all settings. */
export const SETTING_NAMES: readonly string[] = SETTINGS.map(({ env }) => env)

export function deployText(file: string): string {
  return readFileSync(join(DEPLOY, file), 'utf8')
}

/** Parses a YAML file, with merge keys as in compose files. */
export function deployYaml(file: string): unknown {
  return parse(deployText(file), { merge: true })
}

/** Every file of a folder, by its path in it. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .toSorted()
}
