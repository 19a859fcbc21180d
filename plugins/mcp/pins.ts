/**
 * Which definition of each tool is accepted. The first one seen is, also of a tool that a server brings later; another one
 * under the same name is held back until an operator accepts it, so that a server that was reviewed cannot turn into
 * something else unseen.
 */
import type { Definition } from './definitions.ts'

export interface Pin {
	/** The accepted one. */
	definition: Definition
	/** The one that the server has instead, since it last listed its tools. */
	held?: Definition
	/** Does the server still have a tool of this name? The pin stays, or taking a tool away for a moment would undo it. */
	listed: boolean
}

export interface Pins {
	/** In the server's order; those that it no longer lists come last. */
	tools: Pin[]
}

/** Pins of tools that are no longer listed; the oldest ones go. */
const UNLISTED = 256

export interface Comparison {
	pins: Pins
	/** False where nothing of it is new. */
	changed: boolean
	/** Names of tools that are held by this, and were not held with this definition before. */
	held: string[]
}

export function compare(before: Pins | undefined, listed: readonly Definition[]): Comparison {
	const old = new Map(before?.tools.map((pin) => [pin.definition.name, pin]))
	const held: string[] = []
	const tools: Pin[] = []
	for (const definition of listed) {
		const pin = old.get(definition.name)
		old.delete(definition.name)
		if (!pin || pin.definition.digest === definition.digest) {
			tools.push({ definition, listed: true })
			continue
		}
		if (pin.held?.digest !== definition.digest) held.push(definition.name)
		tools.push({ definition: pin.definition, held: definition, listed: true })
	}
	for (const pin of [...old.values()].slice(0, UNLISTED)) tools.push({ ...pin, listed: false })
	const pins = { tools }
	return { pins, changed: JSON.stringify(pins) !== JSON.stringify(before), held }
}

/** Takes held definitions as the accepted ones: all, or those with the given digests. */
export function acceptHeld(before: Pins, digests?: readonly string[]): { pins: Pins; accepted: string[] } {
	const accepted: string[] = []
	const tools = before.tools.map((pin): Pin => {
		if (!pin.held || (digests && !digests.includes(pin.held.digest))) return pin
		accepted.push(pin.definition.name)
		return { definition: pin.held, listed: pin.listed }
	})
	return { pins: { tools }, accepted }
}

/** What agents get. */
export function offered(pins: Pins): Definition[] {
	return pins.tools.flatMap((pin) => (pin.listed && !pin.held ? pin.definition : []))
}
