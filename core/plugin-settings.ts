import { fileURLToPath } from 'node:url'
import type { Config } from '../config/types.ts'
import { Fault, isFault } from './errors.ts'
import type { FieldError } from './errors.ts'
import { wishOf } from './wish.ts'

/**
 * Whether the built-in plugins take what stands under `plugins.<name>`, which gateway.yaml's own schema leaves to them.
 * Throws `config_invalid` as `readConfig` does, whose answer `config` is. Settings of third parties' plugins are not looked
 * at: only a gateway runs their code.
 */
export async function checkPluginSettings(config: Config): Promise<void> {
	const { plugins, locate } = wishOf(config)
	// Sections of their own have been checked.
	const told = plugins.filter(({ name, builtIn }) => builtIn && hasSettings(config.plugins[name]))
	if (told.length === 0) return
	// joi and the plugins' code are worth loading only for this.
	const [{ define }, { Loader }] = await Promise.all([import('./definition.ts'), import('./loader.ts')])
	const loader = new Loader(folder, fileURLToPath(folder))
	const lines: string[] = []
	const errors: FieldError[] = []
	for (const { name, settings } of told) {
		const loaded = await loader.load(name, true)
		try {
			define(settings, loaded, locate)
		} catch (error) {
			if (!isFault(error, 'config_invalid')) throw error
			lines.push(error.message)
			errors.push(...(error.errors ?? []))
		}
	}
	if (lines.length > 0) throw new Fault('config_invalid', lines.join('\n'), { errors })
}

const folder = new URL('../plugins/', import.meta.url)

function hasSettings(said: Config['plugins'][string] | undefined): boolean {
	return typeof said === 'object' && Object.keys(said).some((key) => key !== 'enabled' && key !== 'path')
}
