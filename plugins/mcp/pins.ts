/**
 * Records the accepted definition of each tool. The first definition of a tool is accepted automatically, even if the server adds
 * the tool later. A changed definition is held until an operator accepts it, so that a server cannot change its tools unnoticed
 * after the review.
 */
import type { Definition } from './definitions.ts'

export interface Pin {
	/** The accepted definition. */
	definition: Definition
	/** The changed definition in the server's latest list of tools. */
	held?: Definition
	/** Whether that list contains the tool. The pin remains if not: otherwise a server could remove a tool and add it again, changed. */
	listed: boolean
}

export interface Pins {
	/** In the server's order; tools that it no longer lists are last. */
	tools: Pin[]
}

/** Limits of all pins, which are one record. None is evicted: otherwise a server could list many other tools to get rid of a pin. */
const PINS = 512
const PINS_BYTES = 4 * 1024 * 1024

/**
 * `held`: names of tools that are newly held with this definition. `refused`: one sentence for each new tool that exceeds the limits
 * of pins.
 */
export function compare(before: Pins | undefined, listed: readonly Definition[]) {
	const old = new Map(before?.tools.map((pin) => [pin.definition.name, pin]))
	const held: string[] = []
	const refused: string[] = []
	const tools: Pin[] = []
	const stored = JSON.stringify(before)
	let room = PINS - old.size
	let bytes = PINS_BYTES - Buffer.byteLength(stored ?? '')
	for (const definition of listed) {
		const { name, digest } = definition
		const pin = old.get(name)
		old.delete(name)
		if (!pin) {
			room--
			bytes -= Buffer.byteLength(JSON.stringify(definition))
			if (room < 0 || bytes < 0) {
				refused.push(
					`${name} is new, and the server has listed too many other tools; to forget those, remove the server, and add it again`,
				)
				continue
			}
		}
		if (!pin || pin.definition.digest === digest) {
			tools.push({ definition, listed: true })
			continue
		}
		if (pin.held?.digest !== digest) held.push(name)
		tools.push({ definition: pin.definition, held: definition, listed: true })
	}
	for (const { definition } of old.values()) tools.push({ definition, listed: false })
	const pins: Pins = { tools }
	return { pins, changed: JSON.stringify(pins) !== stored, held, refused }
}

/** Accepts held definitions: all, or those with the given digests. Only of listed tools, since clients cannot read the others. */
export function acceptHeld(before: Pins, digests?: readonly string[]): { pins: Pins; accepted: string[] } {
	const accepted: string[] = []
	const tools = before.tools.map((pin): Pin => {
		if (!pin.held || !pin.listed || (digests && !digests.includes(pin.held.digest))) return pin
		accepted.push(pin.definition.name)
		return { definition: pin.held, listed: pin.listed }
	})
	return { pins: { tools }, accepted }
}

/** The definitions that agents get. */
export function offered(pins: Pins): Definition[] {
	return pins.tools.flatMap((pin) => (pin.listed && !pin.held ? pin.definition : []))
}
