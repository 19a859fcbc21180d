import type { DoctorFile } from '../../core/cli/doctor/contract.ts'

export default {
	packages: { 'isolated-vm': 'runs the code of skills' },
} satisfies DoctorFile
