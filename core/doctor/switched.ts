import type { Config } from '../../config/types.ts'

/** Whether a built-in plugin runs. */
export function isOn({ plugins }: Pick<Config, 'plugins'>, name: string): boolean {
	const said = plugins[name]
	return name === 'auth' || !(said === false || (typeof said === 'object' && said.enabled === false))
}
