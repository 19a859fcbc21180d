import type { Expert } from '../../core/cli/doctor/contract.ts'

export default {
	ports: ({ legacy }) => [{ setting: 'legacy.port', port: legacy.port }],
} satisfies Expert
