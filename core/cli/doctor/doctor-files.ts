/** The checks of built-in plugins, found by their file `doctor.ts`. These files load large packages only when a check runs. */
import type { Config } from '../../../config/types.ts'
import { isOn } from '../../host/desired-state.ts'
import { ownParts } from '../../util/own-files.ts'
import type { DoctorFile } from './contract.ts'

/** By plugin. */
export function doctorFilesByPlugin(): Promise<Map<string, DoctorFile>> {
	return ownParts('doctor.ts')
}

/** With `config`, without those of plugins that it switches off. */
export async function doctorFiles(config?: Config): Promise<DoctorFile[]> {
	return [...(await doctorFilesByPlugin())].flatMap(([name, file]) => (config && !isOn(config, name) ? [] : file))
}
