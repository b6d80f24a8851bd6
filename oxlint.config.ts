import { defineConfig } from 'oxlint'

import { BOUNDARIES, shortName } from './tools/boundaries/table.ts'

/** Restricts the imports of each package's shipped code to the table in tools/boundaries. */
const boundaries = BOUNDARIES.filter((row) => !row.private || row.bundledBy !== undefined).map(
  ({ folder, imports, all }) => ({
    files: [`${folder}/src/**`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: [
                '@signalbox/*',
                '@signalbox/*/*',
                'signalbox',
                ...entriesFor(folder, imports).map((name) => `!${name}`),
              ],
              message: `${folder} may import ${allowed(imports, all)} (docs/architecture.md)`,
            },
            { group: ['**/../packages/**', '**/../apps/**'], message: 'import a package by its name' },
          ],
        },
      ] satisfies ['error', object],
    },
  }),
)

/** Only engines import the Engine port. The entries `internal`, `ports`, `settings`, `fastify`, `events` and `opentelemetry` are for every package that may import theirs. */
function entriesFor(folder: string, imports: readonly string[]): readonly string[] {
  const shared = imports.flatMap((name) => [
    name,
    `${name}/internal`,
    `${name}/ports`,
    `${name}/settings`,
    `${name}/fastify`,
    `${name}/events`,
    `${name}/opentelemetry`,
  ])
  return folder.startsWith('packages/engine-') ? [...shared, '@signalbox/broker-core/engine'] : shared
}

function allowed(imports: readonly string[], all: boolean): string {
  if (all) return 'every published package'
  return imports.length === 0 ? 'no other package of the project' : imports.map(shortName).join(', ')
}

export default defineConfig({
  plugins: ['typescript', 'import', 'unicorn', 'oxc', 'vitest', 'promise'],
  options: {
    typeAware: true,
  },
  categories: {
    correctness: 'error',
    suspicious: 'error',
    perf: 'warn',
  },
  rules: {
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/await-thenable': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/consistent-type-imports': 'error',
    'import/no-cycle': ['error', { ignoreTypes: false }],
    eqeqeq: 'error',
    'vitest/valid-expect': [
      'error',
      {
        maxArgs: 2,
      },
    ],
    'no-console': 'error',
    'no-var': 'error',
    'prefer-const': 'error',
    'no-await-in-loop': 'off',
    'no-underscore-dangle': 'off',
    'no-shadow': 'off',
    'unicorn/no-array-sort': 'off',
    'import/no-unassigned-import': 'off',
    'promise/always-return': 'off',
  },
  overrides: [
    ...boundaries,
    {
      files: ['**/test/**', 'packages/testkit/**', 'tools/**', 'examples/**', '*.config.ts'],
      rules: {
        'typescript/no-non-null-assertion': 'off',
        'typescript/no-unsafe-type-assertion': 'off',
        'no-console': 'off',
      },
    },
  ],
  ignorePatterns: ['**/dist/**', '**/out-tsc/**', 'coverage/**'],
})
