import type { DoctorFile } from '../../core/cli/doctor/contract.ts'

export default {
	ports: ({ legacy }) => [{ setting: 'legacy.port', port: legacy.port }],
} satisfies DoctorFile
