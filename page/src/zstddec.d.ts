declare module "zstddec" {
	export class ZSTDDecoder {
		init(): Promise<void>;
		decode(data: Uint8Array, size?: number): Uint8Array;
	}
}
