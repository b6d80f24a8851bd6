import { Type } from 'typebox'

import { defineManagementRoute, STRICT } from './route.ts'
import type { SettingStatus } from '../ports.ts'

const value = (description: string) =>
  Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Array(Type.String())], { description })

export const settingsRoute = defineManagementRoute({
  path: '/api/settings',
  summary: 'Every setting with its effective value and the source of the value; secrets are hidden.',
  query: Type.Object({}, STRICT),
  data: Type.Object({
    items: Type.Array(
      Type.Object({
        key: Type.String({ description: 'The name in the configuration file.' }),
        env: Type.String({ description: 'The environment variable.' }),
        group: Type.String({ description: 'The heading of the setting in the documentation.' }),
        value: value('The effective value; `[hidden]` for a secret.'),
        default: value('The default.'),
        origin: Type.Unsafe<SettingStatus['origin']>({
          type: 'string',
          enum: ['default', 'file', 'environment', 'flag', 'program'],
          description: 'The source of the value. program: the program that started the server.',
        }),
        origin_detail: Type.String({ description: 'The source with its name, such as `environment HTTP_PORT`.' }),
        description: Type.String(),
        allowed: Type.String({ description: 'The allowed values, in words.' }),
        documentation: Type.String({ description: 'The address of the documentation of the setting.' }),
      }),
    ),
  }),
  run: (_query, { environment }) => ({ items: environment.settings().map(shown) }),
})

function shown({ value: effective, default: normal, ...setting }: SettingStatus) {
  return { ...setting, value: copied(effective), default: copied(normal) }
}

function copied(given: SettingStatus['value']): string | number | boolean | string[] {
  return typeof given === 'object' ? [...given] : given
}
