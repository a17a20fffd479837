import tseslint from 'typescript-eslint';

const impure = [
  { object: 'Date', property: 'now', message: 'Time comes in as nowMs.' },
  { object: 'Math', property: 'random', message: 'Randomness comes in as a port.' },
  { object: 'performance', property: 'now', message: 'Time comes in as nowMs.' },
];

export default tseslint.config(
  { ignores: ['**/dist/**', '**/generated/**', '**/node_modules/**', '.cache/**'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['vitest.config.ts'] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      'max-lines': ['error', { max: 500, skipBlankLines: true, skipComments: true }],
      'max-params': ['error', 4],
      eqeqeq: 'error',
      'no-console': 'error',
    },
  },
  {
    files: [
      'libs/policy/src/**/*.ts',
      'libs/resilience/src/**/*.ts',
      'libs/fleet/src/**/*.ts',
      'libs/views/src/**/*.ts',
    ],
    ignores: ['**/*.test.ts'],
    rules: {
      'no-restricted-properties': ['error', ...impure],
      'no-restricted-globals': [
        'error',
        'setTimeout',
        'setInterval',
        'setImmediate',
        'performance',
        'process',
        'fetch',
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector: 'NewExpression[callee.name="Date"][arguments.length=0]',
          message: 'Time comes in as a parameter.',
        },
      ],
    },
  },
  {
    files: ['**/*.test.ts', 'test/**/*.ts'],
    // Tests are left out of the packages' own projects, so that builds do not carry them.
    languageOptions: { parserOptions: { projectService: false, project: ['tsconfig.test.json'] } },
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/unbound-method': 'off',
      'max-params': 'off',
      'no-console': 'off',
    },
  },
  {
    files: ['apps/cli/src/**/*.ts', 'test/sim/**/*.ts', 'test/bench/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
);
