import type { ExtensionCheck } from '../../core/cli/plugin/extension-findings.ts'
import { sourceProblem } from './contributed.ts'
import type {} from './contract.ts'

export default { point: 'metrics', problem: (source) => sourceProblem(source) } satisfies ExtensionCheck<'metrics'>
