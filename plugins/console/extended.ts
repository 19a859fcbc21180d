import type { ExtensionCheck } from '../../core/cli/plugin/extension-findings.ts'
import { pageProblem } from './added-pages.ts'
import type {} from './contract.ts'

export default { point: 'console', problem: ({ value }) => pageProblem(value) } satisfies ExtensionCheck<'console'>
