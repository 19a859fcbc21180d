import type { ExtensionCheck } from '../../core/cli/plugin/extension-findings.ts'
import { adapterProblem } from './adapters.ts'

export default {
	point: 'channel',
	problem: adapterProblem,
} satisfies ExtensionCheck<'channel'>
